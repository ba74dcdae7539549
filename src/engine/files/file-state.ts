/**
 * The state that the flows of this room keep in memory besides the open cache files, and the lock by which they take
 * turns.
 */
import { setMaxListeners } from "node:events";
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { Logger } from "../../lib/log.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { GoneFile } from "../../metadata/gone-files.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { LocalFiles, SnapshotProgress } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";

/** A file was made shorter, and the kernel may not know it yet; see pending-truncate.ts. */
interface PendingTruncate {
  /** The thread that asked for it. */
  readonly pid: number;
  readonly heard: Promise<void>;
  end(): void;
}

/** A content that could not be read for sending. */
export interface Unreadable {
  readonly tries: number;
  readonly why: string;
}

type SharedFileState = LocalFiles["fileState"];

export class FileState implements SharedFileState {
  /**
   * Kernel node ids whose cache file is being made, closed or removed. Other flows await the promise and look again.
   */
  readonly changing = new Map<KernelNodeId, Promise<void>>();
  /**
   * Kernel node ids whose cache file is being evicted, or was evicted although its row could not be removed.
   */
  readonly evicting = new Set<KernelNodeId>();
  /** Called once the cache file of a kernel node id is closed. */
  readonly afterClose = new Map<KernelNodeId, () => void>();
  /** Called once no snapshot of an inode is needed any more. */
  readonly afterSent = new Map<InodeId, () => void>();
  /** Files that were made shorter, which the kernel may not know yet; see pending-truncate.ts. */
  readonly pendingTruncates = new Map<KernelNodeId, PendingTruncate>();
  /** Kernel node ids whose pages in the kernel may hold bytes that turned out to be wrong. */
  readonly distrusted = new Set<KernelNodeId>();
  /** By kernel node id: contents that could not be read for sending. */
  readonly unreadable = new Map<KernelNodeId, Unreadable>();
  /** True: the gateway answers a request for a range with the whole content. */
  ignoresRanges: boolean;
  evictionTimer: Timer | undefined;
  /**
   * Files that stay open until the mount ends, because their bytes are nowhere else any more; see without-folder.ts.
   */
  readonly keptOpen = new Set<OpenCacheFile>();
  /** By kernel node id that the kernel forgot: the orphan, which is removed soon; see on-forget.ts. */
  readonly forgottenByKernel = new Map<KernelNodeId, InodeId>();
  forgetTimer: Timer | undefined;
  /** Kernel node ids that the kernel forgot while the rows took no changes. */
  readonly forgetsToRepeat = new Set<KernelNodeId>();
  /** Files that are not needed any more, in the order in which they are removed; see file-removal.ts. */
  readonly gone: GoneFile[] = [];
  isRemoving = false;
  /** True: some files could not be removed yet. */
  isLeft = false;
  /** Files that keep their last uncached read in memory, the longest unused first. */
  readonly uncachedReaders = new Set<OpenCacheFile>();
  readonly tasks = new Set<Promise<void>>();
  readonly #snapshotsUnderWay = new Map<InodeId, SnapshotProgress>();
  readonly #unknownToKernel = new Set<KernelNodeId>();
  readonly #stopped = new AbortController();
  #removedAt: ElapsedTime | undefined;
  #downloads = 0;
  #downloadedAt: ElapsedTime | undefined;
  #isUnswept = false;

  constructor(ignoresRanges: boolean) {
    this.ignoresRanges = ignoresRanges;
    // All work under way listens to this signal, so the number of listeners has no limit.
    setMaxListeners(0, this.#stopped.signal);
  }

  isEvicting(kernelNodeId: KernelNodeId) {
    return this.evicting.has(kernelNodeId);
  }
  takeDistrust(kernelNodeId: KernelNodeId) {
    return this.distrusted.delete(kernelNodeId);
  }

  get snapshotsUnderWay() {
    return this.#snapshotsUnderWay;
  }
  noteSnapshot(inode: InodeId, progress: SnapshotProgress | undefined) {
    if (progress === undefined) this.#snapshotsUnderWay.delete(inode);
    else this.#snapshotsUnderWay.set(inode, progress);
  }

  async whileUnknownToKernel<T>(kernelNodeId: KernelNodeId, work: () => Promise<T>) {
    this.#unknownToKernel.add(kernelNodeId);
    try {
      return await work();
    } finally {
      this.#unknownToKernel.delete(kernelNodeId);
    }
  }
  isUnknownToKernel(kernelNodeId: KernelNodeId) {
    return this.#unknownToKernel.has(kernelNodeId);
  }
  /** The kernel forgot it, so it did know it. */
  forgotten(kernelNodeId: KernelNodeId) {
    this.#unknownToKernel.delete(kernelNodeId);
  }

  /** When a program last removed a name; undefined: never. */
  get removedAt() {
    return this.#removedAt;
  }
  nameRemoved(at: ElapsedTime) {
    this.#removedAt = at;
  }

  get downloads() {
    return this.#downloads;
  }
  get downloadedAt() {
    return this.#downloadedAt;
  }
  downloadBegins() {
    this.#downloads += 1;
  }
  downloadEnded(at: ElapsedTime) {
    this.#downloads -= 1;
    this.#downloadedAt = at;
  }

  get isUnswept() {
    return this.#isUnswept;
  }
  sweepBegins() {
    this.#isUnswept = true;
  }
  swept() {
    this.#isUnswept = false;
  }

  get stopped(): AbortSignal {
    return this.#stopped.signal;
  }
  stop() {
    this.#stopped.abort();
  }
}

/**
 * Runs `work` while nothing else makes, closes or removes the cache file of this kernel node id. Rejects as `work`
 * does.
 */
export async function alone<T>(
  context: { readonly fileState: FileState },
  kernelNodeId: KernelNodeId,
  work: () => Promise<T>,
): Promise<T> {
  const { changing } = context.fileState;
  for (let other = changing.get(kernelNodeId); other !== undefined; other = changing.get(kernelNodeId)) await other;
  const run = work();
  const entry = run.then(
    () => void changing.delete(kernelNodeId),
    () => void changing.delete(kernelNodeId),
  );
  changing.set(kernelNodeId, entry);
  await entry;
  return run;
}

/** Runs work that no flow waits for. A failure is logged, unless the mount ends. */
export function inBackground(
  { fileState, log }: { readonly fileState: FileState; readonly log: Logger },
  what: string,
  work: () => Promise<void>,
): void {
  const task = work()
    .catch((error: unknown) => {
      if (!fileState.stopped.aborted) log.error({ err: error }, `${what} failed`);
    })
    .finally(() => fileState.tasks.delete(task));
  fileState.tasks.add(task);
}

/** Ends timers and background work. Open files stay open. The rows may be closed afterwards. */
export async function stopBytes(context: {
  readonly fileState: FileState;
  readonly cacheFiles: { values(): Iterable<OpenCacheFile> };
}): Promise<void> {
  const { fileState, cacheFiles } = context;
  fileState.stop();
  fileState.evictionTimer?.cancel();
  fileState.forgetTimer?.cancel();
  for (const cacheFile of cacheFiles.values()) cacheFile.pacing.cancelLook();
  while (fileState.tasks.size > 0) await Promise.all(fileState.tasks);
  while (fileState.changing.size > 0) await Promise.all(fileState.changing.values());
}
