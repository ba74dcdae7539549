/**
 * A file that is made shorter stays as long as it was to the kernel until the thread that asked for it has run on. What an
 * answer to a READ lacks of that length the kernel shows as zeros, unless nobody has asked for its attributes since. So
 * a read that ends early is done once more when that thread has gone on, or has had the time to.
 */
import { deferred } from "../../lib/deferred.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import { type Caller, FsError, type KernelNodeId } from "../api/index.ts";
import type { CacheFile, Host, LocalFiles } from "../core/index.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";

/** From when it is answered: a thread that has its answer is run before long, also on a busy machine. */
const HEARD_MS = 50;

/** Right before it is cut, for somebody who waits for the answer; see untilAnswered. */
export function beginTruncate(context: LocalFiles, { pid }: Pick<Caller, "pid">, cacheFile: CacheFile): void {
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
  // By its next WRITE the thread says that it has gone on.
  revokeWriteLeases(context, cacheFile);
}

/** `work` may make the file shorter; it is answered right after it. Whoever cuts a file does it in here, or its readers would wait for ever. */
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

/** The thread asks for something: it has gone on. */
export function threadWentOn(
  { fileState }: Pick<LocalFiles, "fileState">,
  { pid }: Pick<Caller, "pid">,
  lineage: KernelNodeId,
): void {
  const one = fileState.pendingTruncates.get(lineage);
  if (one?.pid === pid) one.end();
}

/** Resolves to whether there was anything to wait for, once the thread has gone on or has had the time to. Rejects with EINTR. */
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
