/** The state of an open cache file, in parts. The flows of this room change it; other rooms do not see it. */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { FileStat, OpenFile, RunningHash } from "../../lib/files.ts";
import type { RangeLock } from "../../lib/range-lock.ts";
import type { Ranges } from "../../lib/ranges.ts";
import type { Time } from "../../lib/time.ts";
import type { CacheFile } from "../core/index.ts";

/** The version that the missing ranges belong to. */
export interface Origin {
  readonly node: string;
  readonly version: string;
}

/** A request for bytes of the origin that is under way. Its range may grow to the whole content. */
export interface Download {
  start: number;
  end: number;
  /** No program has asked for these bytes yet: if the request fails, no program hears of it. */
  readonly isPrefetch: boolean;
  failure: Error | undefined;
  readonly controller: AbortController;
  done: Promise<void>;
}

/** The origin, its missing ranges, and the ranges that were checked against its hash. */
export interface OriginRanges {
  origin: Origin | undefined;
  /** SHA-256 of the origin version, also when the file has changed since; null when not known. */
  originHash: string | null;
  /** Bytes of the origin version. Known while the file is that version, or while something is unverified. */
  originSize: number;
  /** Missing ranges: bytes of the origin that are not here yet. */
  missing: Ranges;
  /** Persisted missing ranges, as the row has them. Never less than `missing`. After a crash they count. */
  persistedMissing: Ranges;
  /**
   * Unverified ranges: once a program has changed other bytes, the bytes of the origin, here or missing, that were not
   * checked.
   */
  unverified: Ranges;
  /** The file was cut short to this size, and the row does not yet say that nothing behind it is missing. */
  truncatedTo: number | undefined;
  /** One of `downloads`: the last that verifies the unverified ranges. */
  verification: Download | undefined;
  /** The hash of what has arrived from the beginning of the file on, and how far that is. */
  running: { readonly hash: RunningHash; reached: number } | undefined;
  /** Every byte is the origin's, so the whole can be checked against the origin's hash. */
  isOriginal: boolean;
  /** The check of the complete file against the hash; resolves to whether it matches. Undefined: not begun. */
  check: Promise<boolean> | undefined;
  /** The bytes of the origin that are here are known to be right. */
  isChecked: boolean;
  /**
   * Held while bytes of the origin, or a program's bytes that replace them, are being written, and while bytes of the
   * origin are read to be checked.
   */
  readonly lock: RangeLock;
  readonly downloads: Set<Download>;
  /** Called whenever `missing` or the downloads change. */
  readonly waiting: Set<() => void>;
}

/** The file on the disk, or its stand-in while the disk has no room. */
export interface FileOnDisk {
  file: OpenFile;
  /** Files that were open here before `file`. A read may still use them, so they are closed together with it. */
  readonly former: OpenFile[];
  /**
   * False: there is no file (see missingFile in files/backing-file.ts), or none that can be written. Missing ranges are
   * then read uncached.
   */
  isKept: boolean;
  /** The last uncached read. */
  uncachedBytes: { readonly start: number; readonly bytes: Uint8Array } | undefined;
  /** The file's name may not survive power loss yet. */
  isNew: boolean;
  /** fdatasync. Callers that come while one runs share the next one. */
  readonly sync: () => Promise<void>;
}

/** Opens and writers, and how a writer is admitted. */
export interface FileUse {
  /** Handles, and flows that need the file open for a moment. */
  opens: number;
  /** A program has used the file since it was opened. */
  isUsed: boolean;
  /** Opens for writing. */
  writers: number;
  /** Writers admitted since the file was opened. */
  writersAdmitted: number;
  /** The mtime of the file itself is the true one, or will be after a crash. Fetched bytes must not change it. */
  keepsTimes: boolean;
  /** The mtime that the file was given for a writer to start from. */
  preparedTime: string | undefined;
  preparing: Promise<void> | undefined;
}

/** The changes of programs, and how much of them the rows, the kernel and the disk know. */
export interface FileChanges {
  /** The row says that the content has changed since the last snapshot or clean state: its hash is null. */
  isContentDirty: boolean;
  /**
   * The row, in memory or on the disk, says that the content is durable. Before another byte changes, the row on the
   * disk must say that it is not.
   */
  isDurable: boolean;
  /** Size and times in the rows are older than the file's. */
  hasUnpersistedStat: boolean;
  /** The size that the kernel was told, as far as it is known. */
  shownSize: ShownSize;
  /** The mtime that the kernel was told together with just that size; undefined: not known. */
  shownTime: Time | undefined;
  /** Counts changes that programs began … */
  writes: number;
  /** … and those of them that are not done yet. */
  inFlight: number;
  /** Counts how often a program has set the file's time. */
  timesSet: number;
  /** The time of the first change since the last snapshot. Undefined: there was none. */
  firstWriteAt: ElapsedTime | undefined;
  /** The time of the last change, or at which the file was opened here. */
  lastWriteAt: ElapsedTime;
}

/** Handles of the kernel, and what is known of writes that the kernel makes by itself. */
export interface PassthroughUse {
  /** Handles that the kernel has. */
  kernelHandles: number;
  /**
   * The id under which the kernel reads and writes the file by itself; undefined: we serve it. Decided with the first
   * handle.
   */
  backingId: number | undefined;
  /** Writable handles that the kernel serves by itself. */
  passthroughWriters: number;
  /**
   * All descriptors of passthrough writers are closed, and one of them still has the file mapped; see
   * files/mapping-wait.ts.
   */
  isMapped: boolean;
  admittingWriter: Promise<void> | undefined;
  /** The stat of the last look for writes of passthrough writers; undefined: no such writer. */
  lastStat: FileStat | undefined;
  /** The time of that. */
  lastStatAt: ElapsedTime | undefined;
  /** Any change since then shows in size and times. */
  isLastStatExact: boolean;
  /** True for the rest of a turn: `lastStat` is the state of the file now. */
  isStatCurrent: boolean;
  /** The value of `lastStat` when the file was last synced: up to there the content is durable. */
  durableStat: FileStat | undefined;
}

/**
 * A number: at least the size that the kernel was told last. truncated: since then the kernel has truncated the file by
 * itself. unknown: the kernel may have been told anything.
 */
export type ShownSize = number | "truncated" | "unknown";

/** The kernel was not told yet that the file is so long. */
export function isLongerThanShown(size: number, shown: ShownSize): boolean {
  return shown === "truncated" || (shown !== "unknown" && size > shown);
}

export interface OpenCacheFile extends CacheFile {
  readonly ranges: OriginRanges;
  readonly disk: FileOnDisk;
  readonly use: FileUse;
  readonly changes: FileChanges;
  readonly passthrough: PassthroughUse;
}

/** The state in which a file is found when it is opened. */
export interface FirstState extends Pick<OpenCacheFile, "lineage" | "inode" | "path" | "ranges" | "use" | "changes"> {
  readonly disk: Omit<FileOnDisk, "sync">;
}
