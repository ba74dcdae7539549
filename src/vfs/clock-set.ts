/**
 * Somebody sets the wall clock back: what is to be done soon would wait until the old time comes
 * again, and what was changed before would count as changed later. A monotonic clock beside it
 * tells. Set forward, what waits is merely done sooner. Never waits.
 */
import type { Logger } from "../lib/log.ts";
import type { Runtime } from "../lib/runtime.ts";
import type { Metadata } from "../metadata/metadata.ts";

/** Two clocks that run a little differently are no reason. */
const TOLERANCE_MS = 1_000;

export interface ClockState {
  /** Wall clock less monotonic clock, as of the last look. */
  offset: number;
}

interface Needs {
  readonly clock: ClockState;
  readonly metadata: Pick<Metadata<unknown>, "transaction" | "times">;
  readonly runtime: Pick<Runtime, "now" | "elapsed">;
  readonly log: Logger;
}

export function createClockState({ now, elapsed }: Pick<Runtime, "now" | "elapsed">): ClockState {
  return { offset: now() - elapsed() };
}

/** To be called before times of rows are compared with the clock. */
export function mindClock({ clock, metadata, runtime, log }: Needs): void {
  const now = runtime.now();
  const offset = now - runtime.elapsed();
  const back = clock.offset - offset;
  clock.offset = offset;
  if (back <= TOLERANCE_MS) return;
  metadata.transaction(() => metadata.times.notAfter(now));
  log.warn({ backMs: Math.round(back) }, "the clock was set back");
}
