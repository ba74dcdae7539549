/** The state of an open cache file, in parts. Only flows of this room see and change it. */
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

/** A download of bytes of the origin that is under way. Its range may grow to the whole content. */
export interface Download {
  start: number;
  end: number;
  /** True: no program had asked for these bytes when the download began. No program gets its failure. */
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
  /** Size of the origin version in bytes. Known while the file is that version, or while a range is unverified. */
  originSize: number;
  /** Missing ranges: bytes of the origin that are not here yet. */
  missing: Ranges;
  /** Persisted missing ranges, as the row has them. Never less than `missing`. After a crash they count. */
  persistedMissing: Ranges;
  /**
   * Unverified ranges: bytes of the origin in a changed file, here or missing, that were not checked against the
   * origin's hash yet.
   */
  unverified: Ranges;
  /** The file was truncated to this size, and the row may still name missing ranges behind it. */
  truncatedTo: number | undefined;
  /** The last download that verified the unverified ranges. It is under way while `downloads` has it. */
  verification: Download | undefined;
  /** The running hash, and how many bytes from the beginning of the file it covers. */
  running: { readonly hash: RunningHash; reached: number } | undefined;
  /** Every byte is the origin's, so the whole file can be checked against the origin's hash. */
  isOriginal: boolean;
  /** The check of the complete file against the hash; resolves to true if it matches. Undefined: not begun. */
  check: Promise<boolean> | undefined;
  /** The bytes of the origin that are here are known to be right. */
  isChecked: boolean;
  /**
   * Held while bytes of the origin are being written, while a program's bytes are being written in their place, and
   * while bytes of the origin are read to be checked.
   */
  readonly lock: RangeLock;
  readonly downloads: Set<Download>;
  /** Functions that are called whenever `missing` or the downloads change. */
  readonly waiting: Set<() => void>;
}

/** The file on the disk, or its stand-in while the disk has no room. */
export interface FileOnDisk {
  file: OpenFile;
  /** Files that were open here before `file`. Reads may still use them, so they are closed together with `file`. */
  readonly former: OpenFile[];
  /**
   * False: there is no file (see missingFile in files/backing-file.ts), or none that can be written. Missing ranges are
   * then read uncached.
   */
  isKept: boolean;
  /** The bytes of the last uncached read, for the next one. */
  uncachedBytes: { readonly start: number; readonly bytes: Uint8Array } | undefined;
  /** The file's name may not survive power loss yet. */
  isNew: boolean;
  /** fdatasync. Callers that come while one runs share the next one. */
  readonly sync: () => Promise<void>;
}

/** Opens and writers, and the admission of writers. */
export interface FileUse {
  /** How many handles and flows have the file open. */
  opens: number;
  /** A program has used the file since it was opened. */
  isUsed: boolean;
  /** How many opens for writing there are. */
  writers: number;
  /** How many writers were admitted since the file was opened. */
  writersAdmitted: number;
  /** The mtime of the file itself counts, or would count after a crash. So fetched bytes must not change it. */
  keepsTimes: boolean;
  /** The mtime that the file got before its first writer was admitted. */
  preparedTime: string | undefined;
  preparing: Promise<void> | undefined;
}

/** The changes of programs, and how much of them the rows, the kernel and the disk know. */
export interface FileChanges {
  /** The row says that the content has changed since the last snapshot or clean state: its hash is null. */
  isContentDirty: boolean;
  /**
   * The row, in memory or on the disk, says that the content is durable. Before another byte changes, the row on the
   * disk must say that the content is not durable.
   */
  isDurable: boolean;
  /** Size and times in the rows may be older than the file's. */
  hasUnpersistedStat: boolean;
  /** The size that the kernel was told, as far as that is known. */
  shownSize: ShownSize;
  /** The mtime that the kernel was told together with `shownSize`; undefined: not known. */
  shownTime: Time | undefined;
  /** How many changes programs have begun … */
  writes: number;
  /** … and how many of them are not done yet. */
  inFlight: number;
  /** How many times programs have set the file's mtime. */
  timesSet: number;
  /** The time of the first change since the last snapshot. Undefined: there was none. */
  firstWriteAt: ElapsedTime | undefined;
  /** The time of the last change; before the first one, the time at which the file was opened here. */
  lastWriteAt: ElapsedTime;
}

/** The kernel's handles, and the state of write detection for passthrough writers. */
export interface PassthroughUse {
  /** How many handles the kernel has. */
  kernelHandles: number;
  /**
   * The id under which the kernel reads and writes the file by itself; undefined: we serve it. Decided with the first
   * handle.
   */
  backingId: number | undefined;
  /** How many writable handles the kernel serves by itself. */
  passthroughWriters: number;
  /**
   * All descriptors of passthrough writers are closed, and one of them still has the file mapped; see
   * files/mapping-wait.ts.
   */
  isMapped: boolean;
  admittingWriter: Promise<void> | undefined;
  /** The stat of the last write detection; undefined: there is no passthrough writer. */
  lastStat: FileStat | undefined;
  /** The time of `lastStat`. */
  lastStatAt: ElapsedTime | undefined;
  /** True: any change made after `lastStat` shows in size and times. */
  isLastStatExact: boolean;
  /** True within `whileSeen`: `lastStat` is the present state of the file. */
  isStatCurrent: boolean;
  /** The value of `lastStat` when the file was last synced: the content of that moment is durable. */
  durableStat: FileStat | undefined;
}

/**
 * A number: at least the size that the kernel was told last. truncated: the kernel has truncated the file since then.
 * unknown: the kernel may have been told any size.
 */
export type ShownSize = number | "truncated" | "unknown";

/** True: the kernel was not told yet that the file is this long. */
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
export interface FirstState
  extends Pick<OpenCacheFile, "kernelNodeId" | "inode" | "path" | "ranges" | "use" | "changes"> {
  readonly disk: Omit<FileOnDisk, "sync">;
}
