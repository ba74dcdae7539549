/**
 * A file that is made shorter stays as long as it was to the kernel until the thread that asked for it has run on. What an
 * answer to a READ lacks of that length the kernel shows as zeros, unless nobody has asked for its attributes since. So
 * a read that ends early is done once more when that thread has gone on, or has had the time to.
 */
import { deferred } from "../../lib/deferred.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import { type Caller, FsError, type Lineage } from "../api/index.ts";
import type { Context, LiveFile } from "../core/index.ts";
import { hearWrites } from "./revoke-leases.ts";

/** From when it is answered: a thread that has its answer is run before long, also on a busy machine. */
const HEARD_MS = 50;

/** Right before it is cut, for somebody who waits for the answer; see untilAnswered. */
export function makeShorter(context: Context, { pid }: Pick<Caller, "pid">, live: LiveFile): void {
  const { bytes, mover } = context;
  const { promise, resolve } = deferred<void>();
  const one = {
    pid,
    heard: promise,
    end() {
      if (bytes.shorter.get(live.lineage) === one) bytes.shorter.delete(live.lineage);
      resolve();
    },
  };
  bytes.shorter.get(live.lineage)?.end();
  bytes.shorter.set(live.lineage, one);
  if (live.file.descriptor !== undefined) mover.stopReading(live.file.descriptor);
  // By its next WRITE the thread says that it has gone on.
  hearWrites(context, live);
}

/** `work` may make the file shorter; it is answered right after it. Whoever cuts a file does it in here, or its readers would wait for ever. */
export async function untilAnswered<T>(
  { bytes, runtime }: Pick<Context, "bytes" | "runtime">,
  lineage: Lineage,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } finally {
    const one = bytes.shorter.get(lineage);
    if (one !== undefined) runtime.setTimer(HEARD_MS, one.end);
  }
}

/** The thread asks for something: it has gone on. */
export function goesOn({ bytes }: Pick<Context, "bytes">, { pid }: Pick<Caller, "pid">, lineage: Lineage): void {
  const one = bytes.shorter.get(lineage);
  if (one?.pid === pid) one.end();
}

/** Resolves to whether there was anything to wait for, once the thread has gone on or has had the time to. Rejects with EINTR. */
export async function untilHeard(
  { bytes }: Pick<Context, "bytes">,
  lineage: Lineage,
  signal: AbortSignal,
): Promise<boolean> {
  const one = bytes.shorter.get(lineage);
  if (one === undefined) return false;
  await unlessAborted(one.heard, signal, () => new FsError("EINTR", "interrupted while the file was made shorter"));
  return true;
}
