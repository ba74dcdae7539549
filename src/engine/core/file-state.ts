/** State of the cache files, apart from the open ones, and the work that is left running. */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { AccessSequences } from "../host/index.ts";

/** The work on a file before its content can be sent. */
export interface SnapshotProgress {
  readonly what: "fetched" | "synced to the disk" | "hashed" | "copied";
  readonly since: ElapsedTime;
}

export interface FileState {
  /**
   * Kernel node ids whose cache file is being evicted, or is evicted while its row could not be removed: the row still
   * says that the bytes are here.
   */
  readonly evicting: Set<KernelNodeId>;
  /** Kernel node ids of which the kernel may hold pages that turned out to be wrong. */
  readonly distrusted: Set<KernelNodeId>;
  /** Inodes of which a snapshot is being taken, for the queue that people see. */
  readonly snapshotsUnderWay: Map<InodeId, SnapshotProgress>;
  /**
   * Kernel node ids of files that are being made and that the kernel was not told of yet: it will send no FORGET for
   * them.
   */
  readonly notLookedUp: Set<KernelNodeId>;
  /**
   * When a program last removed a name; undefined: none did. The file's bytes go a little later, when the kernel
   * forgot it.
   */
  removedAt: ElapsedTime | undefined;
  /**
   * There may be local files without a row, because not all files of an earlier mount were looked at yet; see
   * start/sweep.ts.
   */
  isUnswept: boolean;
  /**
   * By folder (inode), the longest unused first: folders whose files are read one after the other; see
   * ops/prefetch-files.ts.
   */
  readonly fileSequences: AccessSequences;
  /** Work that no flow waits for. */
  readonly tasks: Set<Promise<void>>;
  readonly stopped: AbortController;
}
