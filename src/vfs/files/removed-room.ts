/**
 * Room that removals are about to give back. On a local disk removing a file is room for the next one
 * at once; here the bytes go when the kernel says that it forgot the file, a little later.
 */
import { sleep } from "../../lib/runtime.ts";
import type { Context } from "../context/context.ts";

/** So long after the last removal it is waited for. */
const WAIT_MS = 1_000;
const STEP_MS = 20;

/** False: there is nothing to wait for. True: some time has passed, and it may be tried again. */
export async function waitForRemoved({ bytes, runtime }: Pick<Context, "bytes" | "runtime">): Promise<boolean> {
  const { signal } = bytes.stopped;
  if (signal.aborted || runtime.elapsed() - bytes.removedAt >= WAIT_MS) return false;
  await sleep(runtime, STEP_MS, signal);
  return true;
}
