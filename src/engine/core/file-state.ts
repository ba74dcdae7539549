/** State of cache files that need not be open, and the background work. */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { AccessSequences } from "../host/index.ts";

/** What is being done to a file before its content can be sent, and since when. */
export interface SnapshotProgress {
  readonly what: "fetched" | "synced to the disk" | "hashed" | "copied";
  readonly since: ElapsedTime;
}

export interface FileState {
  /**
   * Kernel node ids whose cache file is being evicted, or was evicted although its row could not be removed. The row of
   * such a file still says that the bytes are here.
   */
  readonly evicting: Set<KernelNodeId>;
  /** Kernel node ids whose pages in the kernel may hold bytes that turned out to be wrong. */
  readonly distrusted: Set<KernelNodeId>;
  /** Inodes whose snapshot is being taken, for the queue that people see. */
  readonly snapshotsUnderWay: Map<InodeId, SnapshotProgress>;
  /**
   * Kernel node ids of files that are being made. The kernel was not told of them yet, so it will send no FORGET for
   * them.
   */
  readonly notLookedUp: Set<KernelNodeId>;
  /**
   * When a program last removed a name; undefined: never. The file's bytes go a little later, once the kernel has
   * forgotten the file.
   */
  removedAt: ElapsedTime | undefined;
  /** The number of downloads of content under way. While there are some, fewer names are read ahead. */
  downloads: number;
  /** When the last download ended; undefined: none has. */
  downloadedAt: ElapsedTime | undefined;
  /** The number of small files that are being fetched before a program opens them. */
  filePrefetches: number;
  /**
   * There may be local files without a row, because not all files of an earlier mount were looked at yet; see
   * start/sweep.ts.
   */
  isUnswept: boolean;
  /**
   * By folder (inode), the longest unused first: folders whose files programs open in order; see ops/prefetch-files.ts.
   */
  readonly fileSequences: AccessSequences;
  /** Background work under way. */
  readonly tasks: Set<Promise<void>>;
  /** Aborted when the mount ends. */
  readonly stopped: AbortController;
}
