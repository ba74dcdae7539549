/**
 * A file that is made shorter stays as long as before to the kernel, until the thread that asked for it has gone on. If
 * a READ is answered with fewer bytes than that length, the kernel shows zeros for the rest, unless nobody has asked
 * for the file's attributes since. So a read that ends early is repeated when that thread has gone on, or has had the
 * time to.
 */
import { deferred } from "../../lib/deferred.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import { type Caller, FsError, type KernelNodeId } from "../api/index.ts";
import type { Host } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";
import type { LocalFiles } from "./room.ts";

/** Milliseconds from the answer. A thread that has its answer runs within that time, also on a busy machine. */
const HEARD_MS = 50;

/** Call it right before the file is cut short, within whileTruncating. */
export function beginTruncate(context: LocalFiles, { pid }: Pick<Caller, "pid">, cacheFile: OpenCacheFile): void {
  const { fileState, fastPath } = context;
  const { promise, resolve } = deferred<void>();
  const one = {
    pid,
    heard: promise,
    end() {
      if (fileState.pendingTruncates.get(cacheFile.lineage) === one)
        fileState.pendingTruncates.delete(cacheFile.lineage);
      resolve();
    },
  };
  fileState.pendingTruncates.get(cacheFile.lineage)?.end();
  fileState.pendingTruncates.set(cacheFile.lineage, one);
  if (cacheFile.disk.file.descriptor !== undefined) fastPath.revokeReads(cacheFile.disk.file.descriptor);
  // With its next WRITE the thread shows that it has gone on, so that WRITE must come to us.
  revokeWriteLeases(context, cacheFile);
}

/**
 * `work` may make the file shorter, and the request is answered right after it. Every flow that cuts a file short must
 * do it in here, or readers of the file would wait for ever.
 */
export async function whileTruncating<T>(
  { fileState, runtime }: Pick<LocalFiles & Host, "fileState" | "runtime">,
  lineage: KernelNodeId,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } finally {
    const one = fileState.pendingTruncates.get(lineage);
    if (one !== undefined) runtime.setTimer(HEARD_MS, one.end);
  }
}

/** The thread sends another request, so it has gone on. */
export function threadWentOn(
  { fileState }: Pick<LocalFiles, "fileState">,
  { pid }: Pick<Caller, "pid">,
  lineage: KernelNodeId,
): void {
  const one = fileState.pendingTruncates.get(lineage);
  if (one?.pid === pid) one.end();
}

/**
 * Resolves once the thread has gone on or has had the time to. True: there was something to wait for. Rejects with
 * EINTR.
 */
export async function untilTruncateKnown(
  { fileState }: Pick<LocalFiles, "fileState">,
  lineage: KernelNodeId,
  signal: AbortSignal,
): Promise<boolean> {
  const one = fileState.pendingTruncates.get(lineage);
  if (one === undefined) return false;
  await unlessAborted(one.heard, signal, () => new FsError("EINTR", "interrupted while the file was made shorter"));
  return true;
}
