/**
 * Known folders that must be listed again, because this mount may have missed news of them. They are rows, so that the
 * request is committed together with its cause: a crash in between must not lose it.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare, rememberAny } from "./database.ts";
import type { InodeId } from "./ids.ts";

export interface Relist {
  readonly id: number;
  /** The inode of the folder. */
  readonly folder: InodeId;
}

export function createRelists(database: Connection) {
  // A repeated request for a folder gets another id, so that the end of a list under way does not remove it.
  const insert = prepare(database, "INSERT OR REPLACE INTO relist (folder, due) VALUES (?, 0)");
  const insertAll = prepare(
    database,
    `INSERT OR REPLACE INTO relist (folder, due)
     SELECT id, 0 FROM inode WHERE listed IS NOT NULL UNION SELECT DISTINCT parent, 0 FROM entry`,
  );
  const next = prepare<Relist>(database, "SELECT id, folder FROM relist WHERE due <= ? ORDER BY due, id LIMIT 1");
  const postpone = prepare(database, "UPDATE relist SET due = ? WHERE id = ?");
  const remove = prepare(database, "DELETE FROM relist WHERE id = ?");
  const count = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM relist");
  const byFolder = prepare(database, "SELECT 1 FROM relist WHERE folder = ?");
  const isAny = rememberAny(database, "relist");
  return {
    add(folder: InodeId): void {
      insert.run(folder);
    },
    /** Adds every folder that is completely known or has an entry. */
    addAll(): void {
      insertAll.run();
    },
    has: (folder: InodeId): boolean => isAny() && byFolder.get(folder) !== undefined,
    /** Returns the due folder that has waited longest. `now`: row time. */
    next: (now: RowTime): Relist | undefined => (isAny() ? next.get(now) : undefined),
    /** Removes the request, because the list is in the rows. A request that was repeated meanwhile stays. */
    done({ id }: Relist): void {
      remove.run(id);
    },
    postpone({ id }: Relist, nextAt: RowTime): void {
      postpone.run(nextAt, id);
    },
    count: (): number => (isAny() ? (count.get()?.count ?? 0) : 0),
  };
}
