/**
 * How many requests may be in flight: found out, not set. One more while answers take no longer
 * than the fastest ones do (then nobody waits in a line at the gateway), one less when they do,
 * half as many when the gateway says that it is too much, or says nothing. While this thread is
 * busy, answers wait for it, and that much longer is no line there. Pure: knows no request.
 */

export interface ConcurrencyLimit {
  /** Whole, from 1 to the most. */
  readonly value: number;
  /**
   * Answered after `tookMs`. `wasFull`: as many were in flight as may be, so that more would be of use. `worked`: for
   * how long this thread was busy up to now.
   */
  answered(at: number, tookMs: number, wasFull: boolean, worked: number): void;
  /** Refused as too much, or not answered in time; it was begun at `since`. */
  tooMuch(since: number, at: number): void;
}

/** Requests that may wait in a line at the gateway: below, there is room for more; above, there are too many. */
const LINE_SHORT = 4;
const LINE_LONG = 8;
/** What the fastest answers take is found out again after so long. */
const MEMORY_MS = 60_000;
/** Share of the newest answer in what they take on average. */
const NEWEST = 0.1;
/** How busy this thread is is found out so often. */
const BUSY_MS = 100;

export function createConcurrencyLimit(first: number, most: number): ConcurrencyLimit {
  let limit = Math.min(first, most);
  /** Fastest answer of this stretch of time, and of the one before. */
  let fastest = Number.POSITIVE_INFINITY;
  let fastestBefore = Number.POSITIVE_INFINITY;
  let stretchBegan = Number.NEGATIVE_INFINITY;
  let average: number | undefined;
  let halvedAt = Number.NEGATIVE_INFINITY;
  /** Share of its time this thread was at work, of the last stretch that was looked at; and where the next begins. */
  let busy = 0;
  let looked: { readonly at: number; readonly worked: number } | undefined;

  const set = (value: number) => {
    limit = Math.min(most, Math.max(1, value));
  };

  return {
    get value() {
      return Math.floor(limit);
    },
    answered(at, tookMs, wasFull, worked) {
      if (looked === undefined || at - looked.at >= BUSY_MS) {
        if (looked !== undefined) busy = Math.min(1, (worked - looked.worked) / (at - looked.at));
        looked = { at, worked };
      }
      if (at - stretchBegan >= MEMORY_MS) {
        stretchBegan = at;
        fastestBefore = fastest;
        fastest = Number.POSITIVE_INFINITY;
      }
      fastest = Math.min(fastest, tookMs);
      average = average === undefined ? tookMs : average + NEWEST * (tookMs - average);
      if (!wasFull) return;
      // Of those in flight, the share of their time they waited for others, and not for us.
      const waited = average <= 0 ? 0 : 1 - Math.min(1, Math.min(fastest, fastestBefore) / average);
      const line = limit * waited * (1 - busy);
      if (line < LINE_SHORT) set(limit + 1 / limit);
      else if (line > LINE_LONG) set(limit - 1 / limit);
    },
    tooMuch(since, at) {
      // Those begun before the last time say nothing of how it is since.
      if (since < halvedAt) return;
      halvedAt = at;
      set(limit / 2);
    },
  };
}
