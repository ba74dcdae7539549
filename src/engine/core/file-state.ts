/** State of cache files that need not be open, and the background work. */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";

/** What is being done to a file before its content can be sent, and since when. */
export interface SnapshotProgress {
  readonly what: "fetched" | "synced to the disk" | "hashed" | "copied";
  readonly since: ElapsedTime;
}

export interface FileState {
  /**
   * True: the cache file is being evicted, or was evicted although its row could not be removed. Its row still says
   * that the bytes are here.
   */
  isEvicting(kernelNodeId: KernelNodeId): boolean;
  /** True, once: pages in the kernel may hold bytes of this file that turned out to be wrong. */
  takeDistrust(kernelNodeId: KernelNodeId): boolean;
  /** The snapshots that are being taken, for the queue that people see. */
  readonly snapshotsUnderWay: ReadonlyMap<InodeId, SnapshotProgress>;
  /** Undefined: the snapshot is taken, or was given up. */
  noteSnapshot(inode: InodeId, progress: SnapshotProgress | undefined): void;
  /** `work` makes the file. The kernel was not told of it yet, so it will send no FORGET for it. */
  whileUnknownToKernel<T>(kernelNodeId: KernelNodeId, work: () => Promise<T>): Promise<T>;
  /** True: the file is being made. */
  isUnknownToKernel(kernelNodeId: KernelNodeId): boolean;
  /**
   * A program removed a name. The file's bytes go a little later, once the kernel has forgotten the file.
   */
  nameRemoved(at: ElapsedTime): void;
  /** The number of downloads of content under way. While there are some, fewer names are read ahead. */
  readonly downloads: number;
  /** When the last download ended; undefined: none has. */
  readonly downloadedAt: ElapsedTime | undefined;
  /**
   * There may be local files without a row, because not all files of an earlier mount were looked at yet; see
   * start/sweep.ts.
   */
  readonly isUnswept: boolean;
  sweepBegins(): void;
  swept(): void;
  /** Background work under way. */
  readonly tasks: ReadonlySet<Promise<void>>;
  /** Aborted when the mount ends. */
  readonly stopped: AbortSignal;
}
