/**
 * The time of the next snapshot of a file that stays open for writing. A snapshot is taken after a short pause in the
 * writing. If writing goes on soon after a snapshot, the next pause must be longer, so that a file that is written all
 * day is not sent all day. Pure: times come in, and one goes out.
 */
import { type ElapsedTime, earlierOf, laterOf, minus, plus } from "../../lib/clocks.ts";
import type { SnapshotPacing } from "../core/index.ts";

type SnapshotPace = SnapshotPacing["pace"];

/** A snapshot that failed because a writer came in between is tried again after this time. */
export const SNAPSHOT_AGAIN_MS = 1_000;
/** A snapshot is due after a pause of this length in the writing. */
export const WRITING_PAUSE_MS = 3_000;
const PAUSE_MAX_MS = 60_000;
/** Without such a pause, a snapshot is due this long after the first write. */
const AGE_MS = 15_000;
const AGE_MAX_MS = 5 * 60_000;
/** The pause and the age double each time that writing goes on within this time after a snapshot. */
const GOES_ON_MS = 30_000;
/** After this time without a write, the pause and the age are as at first again. */
const REST_MS = 60_000;
/** After this many doublings the pause and the age have reached their maximum. */
const STEP_MAX = 5;
/**
 * After a copy, the disk rests ten times as long as the copy took. So copying takes no more than a tenth of the time,
 * however large the file is.
 */
const SHARE = 10;

/** The times of the first and the last write since the last snapshot. */
export interface Writes {
  readonly first: ElapsedTime;
  readonly last: ElapsedTime;
}

/** The time at which the next snapshot is due, for a file with these writes. */
export function nextSnapshotAt(pace: SnapshotPace, writes: Writes): ElapsedTime {
  const step = stepOf(pace, writes);
  const paused = plus(writes.last, Math.min(PAUSE_MAX_MS, WRITING_PAUSE_MS * 2 ** step));
  const old = plus(writes.first, Math.min(AGE_MAX_MS, AGE_MS * 2 ** step));
  const due = earlierOf(paused, old);
  return pace.notBefore === undefined ? due : laterOf(pace.notBefore, due);
}

function stepOf({ step, last }: SnapshotPace, { first }: Writes): number {
  if (last === undefined || minus(first, last.writtenAt) >= REST_MS) return 0;
  return minus(first, last.at) < GOES_ON_MS ? Math.min(STEP_MAX, step + 1) : step;
}

/** A snapshot of these writes was taken, from the time `from` to the time `to`. */
export function paceAfterSnapshot(
  pace: SnapshotPace,
  writes: Writes,
  from: ElapsedTime,
  to: ElapsedTime,
): SnapshotPace {
  return { ...paceAfterTry(pace, from, to), step: stepOf(pace, writes), last: { at: to, writtenAt: writes.last } };
}

/** A write came in between, so no snapshot was taken. */
export function paceAfterTry(pace: SnapshotPace, from: ElapsedTime, to: ElapsedTime): SnapshotPace {
  return { ...pace, notBefore: plus(to, SHARE * minus(to, from)) };
}
