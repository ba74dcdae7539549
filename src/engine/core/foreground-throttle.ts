/**
 * Programs go first. While their requests keep this thread at work, what is to be sent goes in turns, a few rows
 * each, with rests between them that are so much longer than the turns that these get a small share of the time.
 * It goes at full speed as soon as programs pause, and while somebody waits for it. No turn is further away than
 * TURN_MS * REST; and what is late, because more is made than turns can send, gets as much of the time as programs.
 * Pure but for the clock: knows no row and no request.
 */
import type { Clock } from "../../lib/runtime.ts";

export interface ForegroundThrottle {
  /** A program's request was at hand for so long; `mayAsk`: maybe because the gateway was waited for. */
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
  /** Somebody waits for what is sent: programs have no right of way while this work goes on. */
  awaited<T>(work: () => Promise<T>): Promise<T>;
  /**
   * How many rows may be begun now: any number, or what is left of a turn. Asked at each look of the loop.
   * `isQuiet`: all that was begun is done.
   */
  room(isQuiet: boolean): number;
  /** Whether programs keep this thread at work, by the last look or one now. */
  isBusy(): boolean;
  /** So many were, `lateMs` after the first of them was due. */
  begun(rows: number, lateMs: number): void;
}

/** How busy programs keep us is found out anew so often … */
export const RIGHT_OF_WAY_LOOK_MS = 25;
/** … of about so long; in which it is noticed that they pause, too. */
const MEMORY_MS = 50;
/** They have the right of way from this share of the time on that their requests are at hand … */
const BUSY = 0.3;
/** … to less than this. */
const PAUSED = 0.15;
/** A request that is at hand for longer waits for the gateway, not for us; … */
const OURS_MS = 2;
/** … one that cannot, for the disk, where what is sent would be in its way, or for a processor. */
const LOCAL_MS = 50;
/** Begun in one turn: enough to share a sync, a commit and a look at the table. */
const TURN_ROWS = 32;
/** A turn that takes longer waits for the gateway. */
const TURN_MS = 250;
/** A rest, in turns: one eighth of the time is for what is sent. */
const REST = 7;
/** The same for what is late. */
const LATE_REST = 1;

interface Turn {
  readonly since: number;
  room: number;
  rest: number;
}

/** `lateMs`: from so long after its time on a row is late. */
export function createForegroundThrottle(clock: Pick<Clock, "elapsed">, lateMs: number): ForegroundThrottle {
  let attendedMs = 0;
  let seenAt = clock.elapsed();
  let share = 0;
  let isBusy = false;
  let waiting = 0;
  let turn: Turn | undefined;
  /** To find out what to begin is part of a turn. */
  let askedAt = seenAt;
  let restUntil = Number.NEGATIVE_INFINITY;

  function look(now: number): void {
    const since = now - seenAt;
    if (since < RIGHT_OF_WAY_LOOK_MS) return;
    const newest = 1 - Math.exp(-since / MEMORY_MS);
    share += newest * (Math.min(1, attendedMs / since) - share);
    seenAt = now;
    attendedMs = 0;
    const wasBusy = isBusy;
    isBusy = share >= (wasBusy ? PAUSED : BUSY);
    // What is under way when programs come is a turn.
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
        const took = now - turn.since;
        if (!isQuiet && took < TURN_MS) return turn.room;
        restUntil = now + turn.rest * Math.min(took, TURN_MS);
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
