/** The one local file that every open of a lineage reads and writes, as it is in memory while open. */
import type { FileStat, OpenFile } from "../../lib/files.ts";
import type { RangeLock } from "../../lib/range-lock.ts";
import type { Ranges } from "../../lib/ranges.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";

/** The version the missing ranges belong to. */
export interface Origin {
  readonly node: string;
  readonly version: string;
}

/** A request for bytes of the origin that is under way. Its range may grow to the whole content. */
export interface Download {
  start: number;
  end: number;
  /** Nobody asked for these bytes yet: a failure is nobody's. */
  readonly isPrefetch: boolean;
  failure: Error | undefined;
  readonly controller: AbortController;
  done: Promise<void>;
}

/** Where one handle's sequential reading would go on, and how far ahead of it is fetched. */
export interface SequentialReader {
  next: number;
  window: number;
  /** The window doubles when reading gets here. */
  growAt: number;
}

/** What the time of the next cut depends on besides the writes since the last one (upload/snapshot-times.ts). */
export interface SnapshotPace {
  /** How often the pause has doubled. */
  readonly step: number;
  /** When it was cut, and when it was last written before that. */
  readonly snapshotAt: number;
  readonly writtenAt: number;
  /** Until then the disk is left alone. */
  readonly notBefore: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
export const NO_SNAPSHOT_YET: SnapshotPace = { step: 0, snapshotAt: NEVER, writtenAt: NEVER, notBefore: NEVER };

/** Which bytes are here: the version the file grew from, what is missing of it, and what was checked against its hash. */
export interface OriginRanges {
  origin: Origin | undefined;
  /** SHA-256 of the origin version, whether or not the file is that still; null where not known. */
  originHash: string | null;
  /** Its length in bytes; known while the file is that version, or something is unproven. */
  originSize: number;
  /** Not here yet. */
  missing: Ranges;
  /** What the row says is missing; never less than `missing`. A crash leaves this. */
  persistedMissing: Ranges;
  /** Bytes of the origin, here or missing, that are not known to be right, once a program has changed others. */
  unverified: Ranges;
  /** It was cut short there, and the row was not told yet that nothing is missing behind it. */
  truncatedTo: number | undefined;
  /** Of those, the last that checks what is unproven. */
  verification: Download | undefined;
  /** Every byte is the origin's: the whole can be checked against its hash. */
  isOriginal: boolean;
  /** The check that the complete file is what its hash says: whether it is. Undefined: not made yet. */
  check: Promise<boolean> | undefined;
  /** What is here of the origin is what it should be. */
  isChecked: boolean;
  /** Held while bytes of the origin, or a program's in the place of such, are on their way to the disk, or those are read to be checked. */
  readonly lock: RangeLock;
  readonly downloads: Set<Download>;
  /** Called whenever `missing` or the downloads changed. */
  readonly waiting: Set<() => void>;
}

/** The file on the disk, or what stands for it while the disk has no room. */
export interface FileOnDisk {
  file: OpenFile;
  /** Taken before it, and perhaps still read from: closed with it. */
  readonly former: OpenFile[];
  /** False: there is no file (absent-file.ts), or none that can be written; what is missing is read past the disk. */
  isKept: boolean;
  /** The last that was read past the disk. */
  uncachedBytes: { readonly start: number; readonly bytes: Uint8Array } | undefined;
  /** Its name may not survive power loss yet. */
  isNew: boolean;
  /** fdatasync, shared by those who come while one runs. */
  readonly sync: () => Promise<void>;
}

/** Opens and writers of the mount, and how a writer is let in. */
export interface FileUse {
  /** Handles, and whoever else needs the file open for a moment. */
  opens: number;
  /** By a program, since it was opened. */
  isUsed: boolean;
  writers: number;
  /** How many there have been. */
  writersAdmitted: number;
  /** The file's own mtime is the truth, or will be after a crash: fetched bytes must not change it. */
  keepsTimes: boolean;
  /** The mtime that was given to the file for a writer to start from. */
  preparedTime: string | undefined;
  preparing: Promise<void> | undefined;
}

/** What programs changed, and how much of that the rows, the kernel and the disk know. */
export interface FileChanges {
  /** The row says that the content changed since the last cut or clean state: its hash is null. */
  isContentDirty: boolean;
  /** The row, here or on the disk, says that power loss leaves the content as it is: no byte may change before it does not. */
  isDurable: boolean;
  /** Size and times in the rows are older than the file's. */
  hasUnpersistedStat: boolean;
  shownSize: ShownSize;
  /** The mtime that it was told with just that size; undefined: not known. */
  shownTime: Time | undefined;
  /** Counts changes begun by programs … */
  writes: number;
  /** … and those that are not done. */
  inFlight: number;
  /** How often a program has set its time. */
  timesSet: number;
  /** Runtime.elapsed() of the first change since the last cut, and of the last one. */
  firstWriteAt: number | undefined;
  lastWriteAt: number;
  /** A program asked for its bytes to be safe since the last cut. */
  isFsyncAsked: boolean;
}

/** When the next snapshot of a file that stays open is taken. */
export interface SnapshotPacing {
  pace: SnapshotPace;
  snapshotTimer: Timer | undefined;
  /** When the timer goes off, as Runtime.elapsed(). */
  snapshotAt: number;
}

/** The handles of the kernel, and what is known of writes that the kernel makes by itself. */
export interface PassthroughUse {
  /** Those of the kernel. */
  kernelHandles: number;
  /** The id under which the kernel reads and writes it itself; decided with the first handle. */
  backingId: number | undefined;
  passthroughWriters: number;
  /** All descriptors of its passed writers are closed, and one of them is mapped still; see lingering.ts. */
  isMapped: boolean;
  admittingWriter: Promise<void> | undefined;
  /** The file as it was when it was last looked at for what passed writers did; undefined: there was none. */
  lastStat: FileStat | undefined;
  /** When that was, as Runtime.elapsed(). */
  lastStatAt: number;
  /** Any change since shows in size and times. */
  isLastStatExact: boolean;
  /** In this turn: `noticed` is what the file is. */
  isStatCurrent: boolean;
  /** What `noticed` was when it was last synced: all of that survives power loss. */
  durableStat: FileStat | undefined;
}

export interface CacheFile {
  readonly lineage: KernelNodeId;
  readonly inode: InodeId;
  readonly path: string;
  readonly ranges: OriginRanges;
  readonly disk: FileOnDisk;
  readonly use: FileUse;
  readonly changes: FileChanges;
  readonly pacing: SnapshotPacing;
  readonly passthrough: PassthroughUse;
}

/**
 * No less than the kernel was told last that the file's size is. cut: since then it has cut the file short itself; unknown:
 * it may have been told anything.
 */
export type ShownSize = number | "cut" | "unknown";

/** The kernel was not told yet that the file is so long. */
export function isLongerThanShown(size: number, shown: ShownSize): boolean {
  return shown === "cut" || (shown !== "unknown" && size > shown);
}

/** Size and time of the rows may be older than the file's. */
export function mayHaveUnpersistedStat(cacheFile: CacheFile): boolean {
  return cacheFile.changes.hasUnpersistedStat || cacheFile.passthrough.lastStat !== undefined;
}
