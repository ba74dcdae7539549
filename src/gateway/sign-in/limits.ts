/**
 * Limits tries: a number of tries at once, then one more after each interval (a token bucket). Counts are in memory: a
 * restart gives an attacker one more burst, which is few compared with the number of possible codes and passwords.
 */
import { LRUCache } from "lru-cache";
import { type ElapsedTime, minus, plus } from "../../lib/clocks.ts";
import type { Clock } from "../../lib/runtime.ts";

interface Limit {
  /** Counts a try of a caller. False: it is one too many, and must not be answered for `waitSeconds`. */
  take(who: string): boolean;
  /** Gives all tries back, because one of them was right. */
  forget(who: string): void;
  waitSeconds(who: string): number;
}

interface LimitOptions {
  /** The number of tries at once. */
  readonly burst: number;
  /** Interval after which one more try is allowed, in milliseconds. */
  readonly everyMs: number;
}

/** The number of callers that are counted. The one that was inactive for longest is forgotten first. */
const CALLERS = 10_000;

export function createLimit(clock: Pick<Clock, "elapsed">, { burst, everyMs }: LimitOptions): Limit {
  /** The time at which a caller has all tries back. */
  const fullAt = new LRUCache<string, ElapsedTime>({ max: CALLERS });
  const spent = (who: string) => {
    const at = fullAt.get(who);
    return at === undefined ? 0 : Math.max(0, minus(at, clock.elapsed()));
  };
  return {
    take(who) {
      const debt = spent(who);
      if (debt > (burst - 1) * everyMs) return false;
      fullAt.set(who, plus(clock.elapsed(), debt + everyMs));
      return true;
    },
    forget: (who) => void fullAt.delete(who),
    waitSeconds: (who) => Math.max(0, Math.ceil((spent(who) - (burst - 1) * everyMs) / 1000)),
  };
}
