/** What the flows of files/ keep in memory besides the open cache files, and the work that they leave running. */
import { setMaxListeners } from "node:events";
import type { Logger } from "../../lib/log.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { GoneFile } from "../../metadata/gone-files.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { AccessSequences } from "../host/index.ts";
import type { CacheFile } from "./cache-file.ts";

/** What is being done to a file before its content can be sent. `since`: Runtime.elapsed(). */
export interface SnapshotProgress {
  readonly what: "fetched" | "synced to the disk" | "hashed" | "copied";
  readonly since: number;
}

/** A content that could not be read for sending. */
export interface Unreadable {
  readonly tries: number;
  readonly why: string;
}

/** A file was made shorter, and the kernel may not know it yet; see files/pending-truncate.ts. */
export interface PendingTruncate {
  /** The thread that asked for it. */
  readonly pid: number;
  readonly heard: Promise<void>;
  end(): void;
}

export interface FileState {
  /** Kernel node ids whose cache file is being made, closed or removed. Others wait for the promise and look again. */
  readonly changing: Map<KernelNodeId, Promise<void>>;
  /**
   * Kernel node ids whose cache file is being evicted, or is evicted while its row could not be removed: the row still
   * says that the bytes are here.
   */
  readonly evicting: Set<KernelNodeId>;
  /** Called once the cache file of a kernel node id is closed. */
  readonly afterClose: Map<KernelNodeId, () => void>;
  /** Called once no snapshot of an inode is needed any more. */
  readonly afterSent: Map<InodeId, () => void>;
  /** Files that were made shorter, which the kernel may not know yet; see files/pending-truncate.ts. */
  readonly pendingTruncates: Map<KernelNodeId, PendingTruncate>;
  /** Kernel node ids of which the kernel may hold pages that turned out to be wrong. */
  readonly distrusted: Set<KernelNodeId>;
  /** The gateway answers a range with the whole content. */
  ignoresRanges: boolean;
  evictionTimer: Timer | undefined;
  /** Kernel node ids whose content could not be read for sending: how often, and why. */
  readonly unreadable: Map<KernelNodeId, Unreadable>;
  /** Inodes of which a snapshot is being taken, for the queue that people see. */
  readonly snapshotsUnderWay: Map<InodeId, SnapshotProgress>;
  /** Kept open until the mount ends, because their bytes are nowhere else any more; see files/without-folder.ts. */
  readonly keptOpen: Set<CacheFile>;
  /** Kernel node ids that the kernel forgot, with their orphans, which are removed soon; see files/on-forget.ts. */
  readonly forgottenByKernel: Map<KernelNodeId, InodeId>;
  forgetTimer: Timer | undefined;
  /** Kernel node ids that the kernel forgot while the rows took no changes. */
  readonly forgetsToRepeat: Set<KernelNodeId>;
  /**
   * Kernel node ids of files that are being made and that the kernel was not told of yet: it will send no FORGET for
   * them.
   */
  readonly notLookedUp: Set<KernelNodeId>;
  /**
   * When a program last removed a name, by Runtime.elapsed(). The file's bytes go a little later, when the kernel
   * forgot it.
   */
  removedAt: number;
  /**
   * There may be local files without a row, because not all files of an earlier mount were looked at yet; see
   * start/sweep.ts.
   */
  isUnswept: boolean;
  /** Files that nobody needs, in the order in which they are removed; see files/file-removal.ts. */
  readonly gone: GoneFile[];
  isRemoving: boolean;
  /** Some files could not be removed. */
  isLeft: boolean;
  /**
   * By folder (inode), the longest unused first: folders whose files are read one after the other; see
   * ops/prefetch-files.ts.
   */
  readonly fileSequences: AccessSequences;
  /** Files that keep their last uncached read in memory, the longest unused first. */
  readonly uncachedReaders: Set<CacheFile>;
  /** Work that nobody waits for. */
  readonly tasks: Set<Promise<void>>;
  readonly stopped: AbortController;
}

export function createFileState(): FileState {
  const stopped = new AbortController();
  // All work that is under way listens to it, so there is no limit.
  setMaxListeners(0, stopped.signal);
  return {
    changing: new Map(),
    evicting: new Set(),
    afterClose: new Map(),
    afterSent: new Map(),
    pendingTruncates: new Map(),
    distrusted: new Set(),
    ignoresRanges: false,
    evictionTimer: undefined,
    unreadable: new Map(),
    snapshotsUnderWay: new Map(),
    keptOpen: new Set(),
    forgottenByKernel: new Map(),
    forgetTimer: undefined,
    forgetsToRepeat: new Set(),
    notLookedUp: new Set(),
    removedAt: Number.NEGATIVE_INFINITY,
    isUnswept: false,
    gone: [],
    isRemoving: false,
    isLeft: false,
    fileSequences: new Map(),
    uncachedReaders: new Set(),
    tasks: new Set(),
    stopped,
  };
}

/** Runs work that nobody waits for. A failure is logged, unless the mount ends. */
export function inBackground(
  context: { readonly fileState: FileState; readonly log: Logger },
  what: string,
  work: () => Promise<void>,
): void {
  const { fileState, log } = context;
  const task = work()
    .catch((error: unknown) => {
      if (!fileState.stopped.signal.aborted) log.error({ err: error }, `${what} failed`);
    })
    .finally(() => fileState.tasks.delete(task));
  fileState.tasks.add(task);
}

/**
 * Only one piece of work at a time makes, closes or removes the cache file of a kernel node id. Rejects as `work` does.
 */
export async function alone<T>(
  context: { readonly fileState: FileState },
  lineage: KernelNodeId,
  work: () => Promise<T>,
): Promise<T> {
  const { changing } = context.fileState;
  for (let other = changing.get(lineage); other !== undefined; other = changing.get(lineage)) await other;
  const run = work();
  const entry = run.then(
    () => void changing.delete(lineage),
    () => void changing.delete(lineage),
  );
  changing.set(lineage, entry);
  await entry;
  return run;
}

/** Ends timers and background work. Open files stay open. The rows may be closed afterwards. */
export async function stopBytes(context: {
  readonly fileState: FileState;
  readonly cacheFiles: ReadonlyMap<KernelNodeId, CacheFile>;
}): Promise<void> {
  const { fileState, cacheFiles } = context;
  fileState.stopped.abort();
  fileState.evictionTimer?.cancel();
  fileState.forgetTimer?.cancel();
  for (const cacheFile of cacheFiles.values()) cacheFile.pacing.snapshotTimer?.cancel();
  while (fileState.tasks.size > 0) await Promise.all(fileState.tasks);
  while (fileState.changing.size > 0) await Promise.all(fileState.changing.values());
}
