/**
 * The state that the flows of this room keep in memory besides the open cache files, and the lock by which they take
 * turns.
 */
import { setMaxListeners } from "node:events";
import type { Logger } from "../../lib/log.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { GoneFile } from "../../metadata/gone-files.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { LocalFiles } from "../core/index.ts";
import { AccessSequences } from "../host/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";

/** A file was made shorter, and the kernel may not know it yet; see pending-truncate.ts. */
export interface PendingTruncate {
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

export interface FileState extends SharedFileState {
  /**
   * Kernel node ids whose cache file is being made, closed or removed. Other flows await the promise and look again.
   */
  readonly changing: Map<KernelNodeId, Promise<void>>;
  /** Called once the cache file of a kernel node id is closed. */
  readonly afterClose: Map<KernelNodeId, () => void>;
  /** Called once no snapshot of an inode is needed any more. */
  readonly afterSent: Map<InodeId, () => void>;
  /** Files that were made shorter, which the kernel may not know yet; see pending-truncate.ts. */
  readonly pendingTruncates: Map<KernelNodeId, PendingTruncate>;
  /** By kernel node id: contents that could not be read for sending. */
  readonly unreadable: Map<KernelNodeId, Unreadable>;
  /** True: the gateway answers a request for a range with the whole content. */
  ignoresRanges: boolean;
  evictionTimer: Timer | undefined;
  /**
   * Files that stay open until the mount ends, because their bytes are nowhere else any more; see without-folder.ts.
   */
  readonly keptOpen: Set<OpenCacheFile>;
  /** By kernel node id that the kernel forgot: the orphan, which is removed soon; see on-forget.ts. */
  readonly forgottenByKernel: Map<KernelNodeId, InodeId>;
  forgetTimer: Timer | undefined;
  /** Kernel node ids that the kernel forgot while the rows took no changes. */
  readonly forgetsToRepeat: Set<KernelNodeId>;
  /** Files that are not needed any more, in the order in which they are removed; see file-removal.ts. */
  readonly gone: GoneFile[];
  isRemoving: boolean;
  /** True: some files could not be removed yet. */
  isLeft: boolean;
  /** Files that keep their last uncached read in memory, the longest unused first. */
  readonly uncachedReaders: Set<OpenCacheFile>;
}

export function createFileState(ignoresRanges: boolean, metadata: Pick<Metadata<unknown>, "entries">): FileState {
  const stopped = new AbortController();
  // All work under way listens to this signal, so the number of listeners has no limit.
  setMaxListeners(0, stopped.signal);
  return {
    changing: new Map(),
    evicting: new Set(),
    afterClose: new Map(),
    afterSent: new Map(),
    pendingTruncates: new Map(),
    distrusted: new Set(),
    ignoresRanges,
    evictionTimer: undefined,
    unreadable: new Map(),
    snapshotsUnderWay: new Map(),
    keptOpen: new Set(),
    forgottenByKernel: new Map(),
    forgetTimer: undefined,
    forgetsToRepeat: new Set(),
    notLookedUp: new Set(),
    removedAt: undefined,
    downloads: 0,
    downloadedAt: undefined,
    filePrefetches: 0,
    isUnswept: false,
    gone: [],
    isRemoving: false,
    isLeft: false,
    fileSequences: new AccessSequences(metadata),
    uncachedReaders: new Set(),
    tasks: new Set(),
    stopped,
  };
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
      if (!fileState.stopped.signal.aborted) log.error({ err: error }, `${what} failed`);
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
  fileState.stopped.abort();
  fileState.evictionTimer?.cancel();
  fileState.forgetTimer?.cancel();
  for (const cacheFile of cacheFiles.values()) cacheFile.pacing.cancelLook();
  while (fileState.tasks.size > 0) await Promise.all(fileState.tasks);
  while (fileState.changing.size > 0) await Promise.all(fileState.changing.values());
}
