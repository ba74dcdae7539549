/**
 * The limit of requests in flight. It is measured, not configured. While answers take no longer than the fastest ones
 * do, no request waits in a line at the gateway, and the limit rises by one per round of answers. When answers take
 * longer, it falls by one. It is halved when the gateway refuses for load, or does not answer. While this thread is
 * busy, answers wait for it, and that time does not count as a line at the gateway. Pure: knows no request.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";

interface ConcurrencyLimit {
  /** The limit, a whole number from 1 to the maximum. */
  readonly value: number;
  /**
   * A request was answered after `tookMs` milliseconds, at the time `at`. `wasFull`: as many requests were in flight as
   * the limit allows, so that a higher limit would be of use. `worked`: milliseconds for which this thread was busy so
   * far.
   */
  answered(at: ElapsedTime, tookMs: number, wasFull: boolean, worked: number): void;
  /**
   * A request that was begun at `since` was refused as too much, or not answered in time.
   */
  tooMuch(since: ElapsedTime, at: ElapsedTime): void;
}

/** Requests in a line at the gateway. Below the first number the limit rises, above the second it falls. */
const LINE_SHORT = 4;
const LINE_LONG = 8;
/** The time of the fastest answers is measured anew after this time. */
const MEMORY_MS = 60_000;
/** The share of the newest answer in the average time of an answer. */
const NEWEST = 0.1;
/** The period over which the busy share of this thread is measured. */
const BUSY_MS = 100;

export function createConcurrencyLimit(first: number, most: number): ConcurrencyLimit {
  let limit = Math.min(first, most);
  /** The fastest answer of this period, and of the period before. */
  let fastest = Number.POSITIVE_INFINITY;
  let fastestBefore = Number.POSITIVE_INFINITY;
  let periodBegan: ElapsedTime | undefined;
  let average: number | undefined;
  let halvedAt: ElapsedTime | undefined;
  /** The busy share of this thread in the last measured period, and the beginning of the next period. */
  let busy = 0;
  let looked: { readonly at: ElapsedTime; readonly worked: number } | undefined;

  const set = (value: number) => {
    limit = Math.min(most, Math.max(1, value));
  };

  return {
    get value() {
      return Math.floor(limit);
    },
    answered(at, tookMs, wasFull, worked) {
      if (looked === undefined || minus(at, looked.at) >= BUSY_MS) {
        if (looked !== undefined) busy = Math.min(1, (worked - looked.worked) / minus(at, looked.at));
        looked = { at, worked };
      }
      if (periodBegan === undefined || minus(at, periodBegan) >= MEMORY_MS) {
        periodBegan = at;
        fastestBefore = fastest;
        fastest = Number.POSITIVE_INFINITY;
      }
      fastest = Math.min(fastest, tookMs);
      average = average === undefined ? tookMs : average + NEWEST * (tookMs - average);
      if (!wasFull) return;
      // The share of a request's time that it waits, for other requests or for this thread. The next line takes off
      // this thread's share.
      const waited = average <= 0 ? 0 : 1 - Math.min(1, Math.min(fastest, fastestBefore) / average);
      const line = limit * waited * (1 - busy);
      if (line < LINE_SHORT) set(limit + 1 / limit);
      else if (line > LINE_LONG) set(limit - 1 / limit);
    },
    tooMuch(since, at) {
      // Requests that were begun before the limit was last halved say nothing about the new limit.
      if (halvedAt !== undefined && since < halvedAt) return;
      halvedAt = at;
      set(limit / 2);
    },
  };
}
