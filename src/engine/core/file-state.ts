/** What the byte flows keep in memory besides the open live files, and the work they leave running. */
import { setMaxListeners } from "node:events";
import type { Logger } from "../../lib/log.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { GoneFile } from "../../metadata/gone-files.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { AccessSequences } from "../host/index.ts";
import type { CacheFile } from "./cache-file.ts";

/** What is being done to the content of a file before it can be sent; `since` by `elapsed`. */
export interface SnapshotProgress {
  readonly what: "fetched" | "synced to the disk" | "hashed" | "copied";
  readonly since: number;
}

export interface Unreadable {
  readonly tries: number;
  readonly why: string;
}

export interface PendingTruncate {
  /** The thread that asked for it. */
  readonly pid: number;
  readonly heard: Promise<void>;
  end(): void;
}

export interface FileState {
  /** Lineages whose live file is being made, closed or removed: who wants it waits and looks again. */
  readonly changing: Map<KernelNodeId, Promise<void>>;
  /** Lineages whose file is being evicted, or has gone and the row could not: their rows say still that it is here. */
  readonly evicting: Set<KernelNodeId>;
  /** What is to be done once the live file of a lineage is closed. */
  readonly afterClose: Map<KernelNodeId, () => void>;
  /** What is to be done once no cut of an inode is needed any more. */
  readonly afterSent: Map<InodeId, () => void>;
  /** Lineages of files that were made shorter, which the kernel may not know yet; see made-shorter.ts. */
  readonly pendingTruncates: Map<KernelNodeId, PendingTruncate>;
  /** Lineages of which the kernel may hold pages that turned out to be wrong. */
  readonly distrusted: Set<KernelNodeId>;
  /** The gateway answers a range with the whole content. */
  ignoresRanges: boolean;
  evictionTimer: Timer | undefined;
  /** Lineages whose content could not be read for sending: how often so far, and why. */
  readonly unreadable: Map<KernelNodeId, Unreadable>;
  /** Inodes that are being cut, for who asks what is going on. */
  readonly snapshotsUnderWay: Map<InodeId, SnapshotProgress>;
  /** Kept open until the end: their bytes have no other place any more; see without-folder.ts. */
  readonly keptOpen: Set<CacheFile>;
  /** Lineages the kernel forgot, and their inodes without a name, which go soon; see forgotten.ts. */
  readonly forgottenByKernel: Map<KernelNodeId, InodeId>;
  forgetTimer: Timer | undefined;
  /** Lineages the kernel forgot while the rows could not be changed. */
  readonly forgetsToRepeat: Set<KernelNodeId>;
  /** Lineages of files that are being made, of which the kernel was told nothing yet: it will not forget them. */
  readonly notLookedUp: Set<KernelNodeId>;
  /** When a program last removed a name: its bytes go a little later, when the kernel forgot it. */
  removedAt: number;
  /** Local files without a row may be there: those of a mount before this one were not all looked at yet; see sweep.ts. */
  isUnswept: boolean;
  /** Files that nobody needs, as they wait to be removed; see gone-files.ts. */
  readonly gone: GoneFile[];
  isRemoving: boolean;
  /** Some could not be removed. */
  isLeft: boolean;
  /** Folders (inodes) whose files are read one after the other, the longest unused first; see siblings.ts. */
  readonly fileSequences: AccessSequences;
  /** Those that keep in memory what was last read past the disk, the longest unused first. */
  readonly uncachedReaders: Set<CacheFile>;
  /** Work nobody waits for. */
  readonly tasks: Set<Promise<void>>;
  readonly stopped: AbortController;
}

export function createFileState(): FileState {
  const stopped = new AbortController();
  // Whatever goes on at once listens to it.
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

/** Runs the work without anybody waiting; what goes wrong is logged. */
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

/** Only one piece of work at a time makes, closes or removes the live file of a lineage. */
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

/** Ends timers and background work; what is open stays open. The rows may be closed afterwards. */
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
