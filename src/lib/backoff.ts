/** Pauses between tries that fail: the first one, then twice as long each time, up to the longest. */
import type { Clock } from "./runtime.ts";

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * The pause after so many failures in a row (1, 2, …), in whole milliseconds. With a clock half of it is certain and half is
 * chance: those that failed together come back apart.
 */
export function backoff({ firstMs, maxMs }: Backoff, failures: number, clock?: Pick<Clock, "random">): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(clock === undefined ? full : full * (0.5 + clock.random() / 2));
}
