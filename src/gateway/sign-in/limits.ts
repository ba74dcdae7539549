/**
 * How often something may be tried: so many times, then one more each time a while has passed (a token bucket). Counts
 * live in memory: a restart gives a guesser one more handful, which the number of possible codes and passwords bears.
 */
import { LRUCache } from "lru-cache";

export interface Limit {
  /** Counts a try of `who`. False: it is one too many, and is not to be answered for `waitSeconds`. */
  take(who: string): boolean;
  /** Gives tries back: it was not a guess. */
  forget(who: string): void;
  waitSeconds(who: string): number;
}

export interface LimitOptions {
  /** How many tries at once. */
  readonly burst: number;
  /** One more after so long, milliseconds. */
  readonly everyMs: number;
}

/** Of so many callers the tries are counted; the one not heard of for longest is forgotten first. */
const CALLERS = 10_000;

export function createLimit(clock: { elapsed(): number }, { burst, everyMs }: LimitOptions): Limit {
  /** When all tries of a caller are back: `elapsed` milliseconds. */
  const fullAt = new LRUCache<string, number>({ max: CALLERS });
  const spent = (who: string) => Math.max(0, (fullAt.get(who) ?? 0) - clock.elapsed());
  return {
    take(who) {
      const debt = spent(who);
      if (debt > (burst - 1) * everyMs) return false;
      fullAt.set(who, clock.elapsed() + debt + everyMs);
      return true;
    },
    forget: (who) => void fullAt.delete(who),
    waitSeconds: (who) => Math.max(0, Math.ceil((spent(who) - (burst - 1) * everyMs) / 1000)),
  };
}
