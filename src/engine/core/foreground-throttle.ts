/**
 * The foreground throttle: programs go first. While their requests keep this thread busy, write-back works in turns of
 * a few rows each, with rests in between. The rests are so long that write-back gets a small share of the time.
 * - Write-back has full speed as soon as programs pause, and while a program waits for an upload.
 * - A rest is never longer than TURN_MAX_MS * REST.
 * - When rows are late, because programs make more than the turns can send, write-back gets half of the time.
 *
 * Pure but for the clock: knows no row and no request.
 */
import { type ElapsedTime, minus, plus } from "../../lib/clocks.ts";
import type { Clock } from "../../lib/runtime.ts";

export interface ForegroundThrottle {
  /** A program's request took this many milliseconds. `mayAsk`: the request may have waited for the gateway. */
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
  /**
   * Runs `work`, in which a program waits for an upload: until it ends, programs do not go first. Rejects as it does.
   */
  unthrottled<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Returns how many rows may be begun now: infinity, or what is left of a turn. The loop asks at each of its looks.
   * `isQuiet`: no row that was begun is still under way.
   */
  room(isQuiet: boolean): number;
  /** True: programs keep this thread busy. Measured anew, unless the last look was a moment ago. */
  isBusy(): boolean;
  /** Call it when rows were begun; `lateMs`: the time since the first of them was due. */
  begun(rows: number, lateMs: number): void;
}

/** The share of the time that programs keep the thread busy is measured this often. */
export const FOREGROUND_LOOK_MS = 25;
/** The measured share is an average over about this time. A pause of programs is noticed within this time too. */
const MEMORY_MS = 50;
/** Programs go first once their requests take this share of the time. */
const BUSY = 0.3;
/** Programs no longer go first once the share of their requests falls below this one. */
const PAUSED = 0.15;
/** A request that may ask the gateway counts for no more than this: the rest is waiting for the gateway. */
const OURS_MS = 2;
/**
 * A request that cannot ask the gateway counts for up to this. It waits for a processor or for the disk, and write-back
 * would be in its way at both.
 */
const LOCAL_MS = 50;
/** Rows of one turn. It is enough rows to share a sync, a commit and a look at the table. */
const TURN_ROWS = 32;
/** A turn that takes longer than this is waiting for the gateway, so it ends. */
const TURN_MAX_MS = 250;
/** A rest is this many times as long as its turn: write-back gets one eighth of the time. */
const REST = 7;
/** When rows are late, a rest is this many times as long as its turn. */
const LATE_REST = 1;

interface Turn {
  readonly since: ElapsedTime;
  room: number;
  rest: number;
}

/** `lateMs`: a row that is begun this many milliseconds after it was due is late. */
export function createForegroundThrottle(clock: Pick<Clock, "elapsed">, lateMs: number): ForegroundThrottle {
  let attendedMs = 0;
  let seenAt = clock.elapsed();
  let share = 0;
  let isBusy = false;
  let waiting = 0;
  let turn: Turn | undefined;
  /** When the loop last asked. The turn begins there, because finding the rows is part of it. */
  let askedAt = seenAt;
  let restUntil = seenAt;

  function look(now: ElapsedTime): void {
    const since = minus(now, seenAt);
    if (since < FOREGROUND_LOOK_MS) return;
    const newest = 1 - Math.exp(-since / MEMORY_MS);
    share += newest * (Math.min(1, attendedMs / since) - share);
    seenAt = now;
    attendedMs = 0;
    const wasBusy = isBusy;
    isBusy = share >= (wasBusy ? PAUSED : BUSY);
    // Rows that are under way when programs become busy count as a turn.
    if (isBusy && !wasBusy) turn = { since: now, room: 0, rest: REST };
  }

  return {
    noteProgramTime(milliseconds, mayAsk) {
      attendedMs += Math.min(milliseconds, mayAsk ? OURS_MS : LOCAL_MS);
    },
    async unthrottled(work) {
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
