/** Pauses between failed tries. Each is twice as long as the one before, up to the longest. */
import type { Clock } from "./runtime.ts";

interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * The pause after this many failures in a row (1, 2, …), in whole milliseconds. With a clock, half of it is fixed and
 * half is random, so that clients that failed together come back at different times.
 */
export function backoff({ firstMs, maxMs }: Backoff, failures: number, clock?: Pick<Clock, "random">): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(clock === undefined ? full : full * (0.5 + clock.random() / 2));
}
