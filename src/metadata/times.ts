/** Limits the times of all tables to the present. Needed when row time begins anew, behind times that are stored. */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare } from "./database.ts";

/**
 * Waiting rows become due now, and past events are not later than now. Rows of releases that used the wall clock may
 * have later times. Each statement finds its rows by an index. A cache file without a version has no time of such a
 * release, because a migration limited it. Positions are left alone, except times that stand for an unknown position.
 * So are times that file systems show.
 */
const UPDATES: readonly string[] = [
  "UPDATE node SET seen_at = @now WHERE seen_at > @now",
  "UPDATE node SET due = @now WHERE bulk IN (0, 1) AND due > @now",
  "UPDATE node SET dirty_since = @now WHERE dirty_since > @now",
  "UPDATE node SET left_at = @now WHERE left_at > @now",
  // The position of an unconfirmed write is a negative time.
  "UPDATE node SET base_position = -@now WHERE base_position < 0 AND base_position < -@now",
  `UPDATE attempt SET next_at = @now, created_at = min(created_at, @now)
     WHERE state = 'open' AND bulk IN (0, 1) AND next_at > @now`,
  "UPDATE attempt SET next_at = @now, created_at = min(created_at, @now) WHERE state = 'abandoned' AND next_at > @now",
  "UPDATE reread SET due = @now WHERE due > @now",
  "UPDATE reread SET missing_since = @now WHERE missing_since > @now",
  "UPDATE relist SET due = @now WHERE due > @now",
  "UPDATE turn SET ends_at = @now WHERE ends_at > @now",
  "UPDATE vacated SET at = @now WHERE at > @now",
  "UPDATE inode SET used = @now WHERE used IS NOT NULL AND used > @now",
  "UPDATE live SET used_at = @now WHERE origin_version IS NOT NULL AND used_at > @now",
];

const POSITIONS: readonly string[] = [
  "UPDATE node SET base_position = @now WHERE base_position > @now",
  "UPDATE tombstone SET position = @now WHERE position > @now",
];

export function createTimes(database: Connection) {
  const updates = UPDATES.map((sql) => prepare(database, sql));
  const positions = POSITIONS.map((sql) => prepare(database, sql));
  return {
    /** Limits all times to `now` (row time). */
    notAfter(now: RowTime): void {
      for (const update of updates) update.run({ now });
    },
    /** Limits all positions to `now`, for a gateway whose positions are times. Reads each row. */
    positionsNotAfter(now: RowTime): void {
      for (const update of positions) update.run({ now });
    },
  };
}
