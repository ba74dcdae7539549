/**
 * Pending truncates: a file was made shorter, and the kernel goes on with the old size until the thread that asked for
 * it has gone on. The race: a READ of another thread is answered with fewer bytes, because the file is shorter. If the
 * kernel has taken in attributes of the file meanwhile, it fills the rest up to the old size with zeros. So a read that
 * ends early is repeated when the truncating thread has gone on, or has had the time to.
 */
import { deferred } from "../../lib/deferred.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import { type Caller, FsError, type KernelNodeId } from "../api/index.ts";
import type { Host } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";
import type { LocalFiles } from "./room.ts";

/** Milliseconds. A thread that was answered goes on within this time, also on a busy machine. */
const HEARD_MS = 50;

/** Call it right before the file is made shorter, within whileTruncating. */
export function beginTruncate(context: LocalFiles, { pid }: Pick<Caller, "pid">, cacheFile: OpenCacheFile): void {
  const { fileState, fastPath } = context;
  const { promise, resolve } = deferred<void>();
  const one = {
    pid,
    heard: promise,
    end() {
      if (fileState.pendingTruncates.get(cacheFile.kernelNodeId) === one)
        fileState.pendingTruncates.delete(cacheFile.kernelNodeId);
      resolve();
    },
  };
  fileState.pendingTruncates.get(cacheFile.kernelNodeId)?.end();
  fileState.pendingTruncates.set(cacheFile.kernelNodeId, one);
  if (cacheFile.disk.file.descriptor !== undefined) fastPath.revokeReads(cacheFile.disk.file.descriptor);
  // With its next WRITE the thread shows that it has gone on, so that WRITE must come to JavaScript.
  revokeWriteLeases(context, cacheFile);
}

/**
 * Runs `work`, which may make the file shorter. The request must be answered right after it. Every flow that makes a
 * file shorter must do so in here, or readers of the file would wait for ever. Rejects as `work` does.
 */
export async function whileTruncating<T>(
  { fileState, runtime }: Pick<LocalFiles & Host, "fileState" | "runtime">,
  kernelNodeId: KernelNodeId,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } finally {
    const one = fileState.pendingTruncates.get(kernelNodeId);
    if (one !== undefined) runtime.setTimer(HEARD_MS, one.end);
  }
}

/** The caller sent a request. If its thread made the file shorter, that thread has gone on. */
export function threadWentOn(
  { fileState }: Pick<LocalFiles, "fileState">,
  { pid }: Pick<Caller, "pid">,
  kernelNodeId: KernelNodeId,
): void {
  const one = fileState.pendingTruncates.get(kernelNodeId);
  if (one?.pid === pid) one.end();
}

/**
 * Resolves once the truncating thread has gone on, or has had the time to. True: there was such a thread. Rejects with
 * EINTR when `signal` aborts.
 */
export async function untilTruncateKnown(
  { fileState }: Pick<LocalFiles, "fileState">,
  kernelNodeId: KernelNodeId,
  signal: AbortSignal,
): Promise<boolean> {
  const one = fileState.pendingTruncates.get(kernelNodeId);
  if (one === undefined) return false;
  await unlessAborted(one.heard, signal, () => new FsError("EINTR", "interrupted while the file was made shorter"));
  return true;
}
