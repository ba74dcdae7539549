/**
 * Programs go first. While their requests keep this thread busy, write-back works in turns of a few rows each. The
 * rests between turns are so much longer than the turns that write-back gets a small share of the time.
 * - Full speed as soon as programs pause, and while a program waits for what is sent.
 * - No turn is further away than TURN_MAX_MS * REST.
 * - Rows that are late, because more is made than turns can send, get as much of the time as programs.
 *
 * Pure but for the clock: knows no row and no request.
 */
import { type ElapsedTime, minus, plus } from "../../lib/clocks.ts";
import type { Clock } from "../../lib/runtime.ts";

export interface ForegroundThrottle {
  /**
   * A program's request was under way for so many milliseconds. `mayAsk`: the request may have waited for the gateway.
   */
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
  /** A program waits for what is sent: while this work goes on, programs do not go first. */
  awaited<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Returns how many rows may be begun now: any number, or the rest of a turn. Asked at each look of the loop.
   * `isQuiet`: all that was begun is done.
   */
  room(isQuiet: boolean): number;
  /** True: programs keep this thread busy, by a look now, or by the last look if that was a moment ago. */
  isBusy(): boolean;
  /** Call it when rows were begun; `lateMs`: the time since the first of them was due. */
  begun(rows: number, lateMs: number): void;
}

/** How busy programs keep the thread is measured this often … */
export const RIGHT_OF_WAY_LOOK_MS = 25;
/** … over about this long. In that time a pause of programs is noticed, too. */
const MEMORY_MS = 50;
/** Programs go first once their requests are under way for this share of the time … */
const BUSY = 0.3;
/** … until it falls below this one. */
const PAUSED = 0.15;
/** A request that may ask the gateway: what takes longer than this is waiting for the gateway, not for this thread. */
const OURS_MS = 2;
/**
 * A request that cannot ask the gateway: up to this it counts in full, because it waits for the disk, where write-back
 * would be in its way, or for a processor.
 */
const LOCAL_MS = 50;
/** Rows of one turn: enough to share a sync, a commit and a look at the table. */
const TURN_ROWS = 32;
/** A turn that takes longer is waiting for the gateway. */
const TURN_MAX_MS = 250;
/** Length of a rest in turns: write-back gets one eighth of the time. */
const REST = 7;
/** The same when rows are late. */
const LATE_REST = 1;

interface Turn {
  readonly since: ElapsedTime;
  room: number;
  rest: number;
}

/** `lateMs`: a row is late so long after it was due. */
export function createForegroundThrottle(clock: Pick<Clock, "elapsed">, lateMs: number): ForegroundThrottle {
  let attendedMs = 0;
  let seenAt = clock.elapsed();
  let share = 0;
  let isBusy = false;
  let waiting = 0;
  let turn: Turn | undefined;
  /** When the loop last asked: finding out what to begin is part of a turn. */
  let askedAt = seenAt;
  let restUntil = seenAt;

  function look(now: ElapsedTime): void {
    const since = minus(now, seenAt);
    if (since < RIGHT_OF_WAY_LOOK_MS) return;
    const newest = 1 - Math.exp(-since / MEMORY_MS);
    share += newest * (Math.min(1, attendedMs / since) - share);
    seenAt = now;
    attendedMs = 0;
    const wasBusy = isBusy;
    isBusy = share >= (wasBusy ? PAUSED : BUSY);
    // Rows that are under way when programs come count as a turn.
    if (isBusy && !wasBusy) turn = { since: now, room: 0, rest: REST };
  }

  return {
    noteProgramTime(milliseconds, mayAsk) {
      attendedMs += Math.min(milliseconds, mayAsk ? OURS_MS : LOCAL_MS);
    },
    async awaited(work) {
      waiting += 1;
      try {
        return await work();
      } finally {
        waiting -= 1;
      }
    },
    room(isQuiet) {
      const now = clock.elapsed();
      askedAt = now;
      look(now);
      if (!isBusy || waiting > 0) {
        turn = undefined;
        restUntil = now;
        return Number.POSITIVE_INFINITY;
      }
      if (turn !== undefined) {
        const took = minus(now, turn.since);
        if (!isQuiet && took < TURN_MAX_MS) return turn.room;
        restUntil = plus(now, turn.rest * Math.min(took, TURN_MAX_MS));
        turn = undefined;
      }
      return now < restUntil ? 0 : TURN_ROWS;
    },
    isBusy() {
      look(clock.elapsed());
      return isBusy;
    },
    begun(rows, late) {
      turn ??= { since: askedAt, room: TURN_ROWS, rest: REST };
      turn.room = Math.max(0, turn.room - rows);
      if (late > lateMs) turn.rest = LATE_REST;
    },
  };
}
