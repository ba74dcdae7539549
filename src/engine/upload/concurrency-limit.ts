/**
 * The limit of requests in flight: measured, not configured. While answers take no longer than the fastest ones do, no
 * request waits in a line at the gateway, and the limit rises by one per round of answers. When answers take longer, it
 * falls by one. It is halved when the gateway refuses for load, or does not answer. While this thread is busy, answers
 * wait for it; that extra time does not count as a line at the gateway. Pure: knows no request.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";

export interface ConcurrencyLimit {
  /** The limit, a whole number from 1 to the maximum. */
  readonly value: number;
  /**
   * A request was answered after `tookMs` milliseconds, at the time `at`. `wasFull`: as many requests
   * were in flight as the limit allows, so that a higher limit would be of use. `worked`: for how long this thread was
   * busy up to now, in milliseconds.
   */
  answered(at: ElapsedTime, tookMs: number, wasFull: boolean, worked: number): void;
  /**
   * A request that was begun at `since` was refused as too much, or not answered in time.
   */
  tooMuch(since: ElapsedTime, at: ElapsedTime): void;
}

/**
 * Requests that may wait in a line at the gateway. Below the first number the limit rises, above the second it falls.
 */
const LINE_SHORT = 4;
const LINE_LONG = 8;
/** The time of the fastest answers is measured anew after this time. */
const MEMORY_MS = 60_000;
/** The share of the newest answer in the average time of an answer. */
const NEWEST = 0.1;
/** How often it is measured how busy this thread is. */
const BUSY_MS = 100;

export function createConcurrencyLimit(first: number, most: number): ConcurrencyLimit {
  let limit = Math.min(first, most);
  /** The fastest answer of this period, and of the period before. */
  let fastest = Number.POSITIVE_INFINITY;
  let fastestBefore = Number.POSITIVE_INFINITY;
  let stretchBegan: ElapsedTime | undefined;
  let average: number | undefined;
  let halvedAt: ElapsedTime | undefined;
  /**
   * The share of its time that this thread was busy in the last period that was measured, and where the next period
   * begins.
   */
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
      if (stretchBegan === undefined || minus(at, stretchBegan) >= MEMORY_MS) {
        stretchBegan = at;
        fastestBefore = fastest;
        fastest = Number.POSITIVE_INFINITY;
      }
      fastest = Math.min(fastest, tookMs);
      average = average === undefined ? tookMs : average + NEWEST * (tookMs - average);
      if (!wasFull) return;
      // The share of their time that the requests in flight waited for other requests, and not for this thread.
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
