/**
 * The time of the next cut of a file that stays open for writing. What a program saves is sent after a short pause in its
 * writing; where writing goes on soon after a cut, the next pause is longer, so that a file written all day is not sent all
 * day. Pure: milliseconds of one clock come in, one goes out.
 */
import type { SnapshotPace } from "../core/index.ts";

/** A pause in the writing. */
export const WRITING_PAUSE_MS = 3_000;
const PAUSE_MAX_MS = 60_000;
/** From the first write on, where there is no such pause. */
const AGE_MS = 15_000;
const AGE_MAX_MS = 5 * 60_000;
/** Both double where writing goes on so soon after a cut … */
const GOES_ON_MS = 30_000;
/** … and are the first ones again after so long without a write. */
const REST_MS = 60_000;
/** Both have reached their most. */
const STEP_MAX = 5;
/** Copying takes no more than a tenth of the time, however large the file. */
const SHARE = 10;

/** Since the last cut. */
export interface Writes {
  readonly first: number;
  readonly last: number;
}

export function nextSnapshotAt(pace: SnapshotPace, writes: Writes): number {
  const step = stepOf(pace, writes);
  const paused = writes.last + Math.min(PAUSE_MAX_MS, WRITING_PAUSE_MS * 2 ** step);
  const old = writes.first + Math.min(AGE_MAX_MS, AGE_MS * 2 ** step);
  return Math.max(pace.notBefore, Math.min(paused, old));
}

function stepOf({ step, snapshotAt, writtenAt }: SnapshotPace, { first }: Writes): number {
  if (first - writtenAt >= REST_MS) return 0;
  return first - snapshotAt < GOES_ON_MS ? Math.min(STEP_MAX, step + 1) : step;
}

/** A cut of these writes was made, from one time to the other. */
export function paceAfterSnapshot(pace: SnapshotPace, writes: Writes, from: number, to: number): SnapshotPace {
  return { ...paceAfterTry(pace, from, to), step: stepOf(pace, writes), snapshotAt: to, writtenAt: writes.last };
}

/** A write came in between. */
export function paceAfterTry(pace: SnapshotPace, from: number, to: number): SnapshotPace {
  return { ...pace, notBefore: to + SHARE * (to - from) };
}
