/**
 * The running hash: hashes a download while it arrives, so that its check is done soon after the last byte. That works
 * as long as the bytes arrive from the beginning of the file on, about in order. A file that was read out of order is
 * hashed as a whole once all of it is here.
 */
import type { RunningHash } from "../../lib/files.ts";
import type { Host } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";

/**
 * Bytes by which the hash may be behind the bytes that are here without a gap. It is more than the windows of one
 * reader, which arrive in any order.
 */
const BEHIND_MAX = 64 * 1024 * 1024;

/** Call it after bytes of the origin have arrived. Hashed bytes do not change while the file is original. */
export function hashArrived({ runtime }: Host, { path, ranges }: OpenCacheFile): void {
  const { isOriginal, originHash, isChecked, originSize } = ranges;
  const here = ranges.missing[0] ?? originSize;
  const hashed = ranges.running?.reached ?? 0;
  if (!isOriginal || originHash === null || isChecked || here - hashed > BEHIND_MAX) {
    stopHash(ranges);
    return;
  }
  if (here === hashed) return;
  ranges.running ??= { hash: runtime.files.beginHash(path), reached: 0 };
  ranges.running.hash.reach(here);
  ranges.running.reached = here;
}

/** Takes the running hash, to finish it. Undefined: the file has to be hashed as a whole. */
export function takeHash(ranges: OpenCacheFile["ranges"]): RunningHash | undefined {
  const { running } = ranges;
  ranges.running = undefined;
  return running?.hash;
}

export function stopHash(ranges: OpenCacheFile["ranges"]): void {
  takeHash(ranges)?.cancel();
}
