/** Limits the number of events within a period. It does not know the events. */
import { type ElapsedTime, minus } from "../lib/clocks.ts";
import type { Clock } from "../lib/runtime.ts";

/** Returns a function that must be called before each event. True: the event may happen, and counts. */
export function rateLimit(count: number, milliseconds: number, elapsed: Clock["elapsed"]): () => boolean {
  let recent: ElapsedTime[] = [];
  return () => {
    const now = elapsed();
    recent = recent.filter((at) => minus(now, at) < milliseconds);
    if (recent.length >= count) return false;
    recent.push(now);
    return true;
  };
}
