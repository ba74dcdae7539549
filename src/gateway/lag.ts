/**
 * A reader that follows the changes late: the path index or the journal. The queue is the table of changes itself, so
 * it survives a restart. The position that the reader has reached is stored beside it.
 *
 * Invariant: that position only increases, one change after the other. A shown change is never taken back, whether the
 * lag is raised or the clock jumps. A change that is due early waits for the changes before it. Waiting is measured by
 * the clock that never goes back.
 */
import { type ElapsedTime, minus, plus } from "../lib/clocks.ts";
import type { Clock } from "../lib/runtime.ts";
import type { Store } from "./store.ts";

export interface Lag {
  /** Returns the position up to which the reader shows changes now. */
  shown(): number;
  /** Notes that the changes after the position happen now. */
  begin(position: number): void;
}

/** The largest number of shown changes at the beginning of the queue. */
const COMPACT_COUNT = 1000;
/** When the position of the reader could not be stored, the position stored before is shown for this long. */
const HOLD_MS = 1000;

interface LagTimes {
  readonly lagMs: number;
  /** Each change waits for up to this much longer. */
  readonly jitterMs: number;
}

/** The changes after a position, up to the position of the next item. */
interface Waiting {
  readonly after: number;
  since: ElapsedTime;
  /** Share of the jitter, 0..1; drawn when the changes are the next to be shown. */
  share: number | undefined;
}

interface ChangeTime {
  position: number;
  time: number;
}

/** Returns the latest change. */
export function lastChange(store: Store): ChangeTime {
  const row = store.prepare<ChangeTime>("SELECT position, time FROM change ORDER BY position DESC LIMIT 1").get();
  return row ?? { position: 0, time: 0 };
}

/**
 * Returns the position of the last change of a workspace up to `asOf`, or 0. The content of the workspace is the same
 * at both positions, whatever happened in other workspaces meanwhile.
 */
export function lastChangeOf(store: Store, workspace: string, asOf: number): number {
  // Each change is in one of the two indices.
  const last = (which: "IS NULL" | "IS NOT NULL") =>
    store
      .prepare<number>(
        `SELECT position FROM change WHERE workspace = ? AND entry ${which} AND position <= ?
         ORDER BY position DESC LIMIT 1`,
      )
      .pluck()
      .get(workspace, asOf) ?? 0;
  return Math.max(last("IS NOT NULL"), last("IS NULL"));
}

/**
 * Returns the last position whose change happened at or before `time` (milliseconds), at least `from`. Times never
 * decrease along positions, so this is a binary search. All changes of one transaction have one time, so the position
 * never lies within a transaction.
 */
export function positionAt(store: Store, time: number, from = 0): number {
  const last = lastChange(store);
  if (last.time <= time) return Math.max(last.position, from);
  const before = store.prepare<ChangeTime>(
    "SELECT position, time FROM change WHERE position <= ? ORDER BY position DESC LIMIT 1",
  );
  let low = from;
  let high = last.position;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const row = before.get(middle);
    if (row === undefined || row.time <= time) low = middle;
    else high = Math.min(middle, row.position) - 1;
  }
  return low;
}

export function createLag(store: Store, clock: Clock, reader: "path" | "journal", times: () => LagTimes): Lag {
  const stored = store.prepare<{ position: number }>("SELECT position FROM shown WHERE reader = ?").get(reader);
  const keep = store.prepare("UPDATE shown SET position = ? WHERE reader = ?");
  let shown = stored?.position ?? 0;
  let kept = shown;
  let queue: Waiting[] = [];
  let first = 0;
  let keptUntil: ElapsedTime | undefined;

  /** Loads the queue as after a restart: changes are as old as the wall clock says, but none is from the future. */
  function load(): void {
    const now = clock.wallClock();
    queue = [];
    first = 0;
    let last = { position: shown, time: Number.NaN };
    const rows = store.prepare<ChangeTime>("SELECT position, time FROM change WHERE position > ? ORDER BY position");
    for (const row of rows.iterate(shown)) {
      // All changes of one transaction have one time, and are shown together.
      if (row.time !== last.time) {
        const age = Math.max(0, now - row.time);
        queue.push({ after: last.position, since: plus(clock.elapsed(), -age), share: undefined });
      }
      last = row;
    }
  }
  load();

  function isDue(waiting: Waiting): boolean {
    const { lagMs, jitterMs } = times();
    if (waiting.share === undefined && jitterMs > 0) waiting.share = clock.random();
    return minus(clock.elapsed(), waiting.since) >= lagMs + jitterMs * (waiting.share ?? 0);
  }

  function advance(): void {
    let head = queue[first];
    while (head !== undefined && isDue(head)) {
      first += 1;
      head = queue[first];
    }
    if (first > COMPACT_COUNT && first * 2 > queue.length) {
      queue = queue.slice(first);
      first = 0;
    }
    shown = Math.max(shown, head?.after ?? lastChange(store).position);
  }

  // The position is stored in the transaction that made or showed the change: a restart does not hide changes that a
  // reader saw.
  store.beforeCommit(() => {
    advance();
    if (shown === kept) return;
    keep.run(shown, reader);
    kept = shown;
  });
  store.afterRollback(() => {
    kept =
      store.prepare<{ position: number }>("SELECT position FROM shown WHERE reader = ?").get(reader)?.position ?? 0;
    shown = kept;
    keptUntil = plus(clock.elapsed(), HOLD_MS);
    load();
  });

  function keepShown(): void {
    try {
      store.transaction(() => undefined);
    } catch {
      // The transaction was rolled back: the stored position is shown.
    }
  }

  return {
    shown() {
      // Changes that a restart would hide again are not shown. So on a full disk nothing new is shown.
      if (keptUntil !== undefined && clock.elapsed() < keptUntil && !store.isChanging()) return kept;
      advance();
      if (shown !== kept && !store.isChanging()) keepShown();
      return shown;
    },
    begin(position) {
      // Changes noted before at this position or after it were rolled back.
      while (queue.length > first && (queue.at(-1)?.after ?? 0) > position) queue.pop();
      const last = queue.at(-1);
      const since = clock.elapsed();
      if (last !== undefined && first < queue.length && last.after === position) {
        last.since = since;
        return;
      }
      const { lagMs, jitterMs } = times();
      if (lagMs === 0 && jitterMs === 0 && first === queue.length) return;
      if (last !== undefined && first < queue.length && last.since === since) return;
      queue.push({ after: position, since, share: undefined });
    },
  };
}
