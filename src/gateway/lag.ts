/**
 * A reader that follows the changes late: the path index or the journal. The queue is the table of
 * changes itself, so it survives a restart; what is kept beside it is how far the reader has come.
 * That only ever goes up: nothing shown is un-shown, also when the lag is raised or the clock jumps.
 */
import type { Clock } from "../lib/runtime.ts";
import type { Store } from "./store.ts";

export interface Lag {
  /** The position up to which the reader shows changes now. */
  shown(): number;
}

interface ChangeTime {
  position: number;
  time: number;
}

/** The latest change. */
export function lastChange(store: Store): ChangeTime {
  const row = store.prepare<ChangeTime>("SELECT position, time FROM change ORDER BY position DESC LIMIT 1").get();
  return row ?? { position: 0, time: 0 };
}

/**
 * The last position whose change happened at or before `time` (milliseconds), at least `from`.
 * Times never go back along positions, so this halves. All changes of one transaction have one
 * time: a position found here never lies within one.
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

export function createLag(store: Store, clock: Clock, reader: "path" | "journal", lagMs: () => number): Lag {
  const stored = store.prepare<{ position: number }>("SELECT position FROM shown WHERE reader = ?").get(reader);
  const keep = store.prepare("UPDATE shown SET position = ? WHERE reader = ?");
  let shown = stored?.position ?? 0;
  return {
    shown() {
      const lag = lagMs();
      const next = lag <= 0 ? lastChange(store).position : positionAt(store, clock.now() - lag, shown);
      if (next > shown) {
        shown = next;
        keep.run(shown, reader);
      }
      return shown;
    },
  };
}
