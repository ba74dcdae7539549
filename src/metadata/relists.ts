/**
 * Folders that are known and whose list is to be read again all the same, for what came into them may have been told
 * when nobody here listened. Rows, because what asks for it is committed with it: a crash in between must not lose it.
 */
import { type Connection, prepare, rememberAny } from "./database.ts";
import type { InodeId } from "./ids.ts";

export interface Relist {
  readonly id: number;
  /** An inode. */
  readonly folder: InodeId;
}

export function createRelists(database: Connection) {
  // Asked for again, it gets another id: a list that is under way does not answer for it.
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
  const isAny = rememberAny(database, "relist");
  return {
    add(folder: InodeId): void {
      insert.run(folder);
    },
    /** Every folder in which anything is known. */
    addAll(): void {
      insertAll.run();
    },
    /** The one that has waited longest of those that are due. */
    next: (now: number): Relist | undefined => (isAny() ? next.get(now) : undefined),
    /** Its list is in the rows. Asked for again meanwhile, it stays. */
    done({ id }: Relist): void {
      remove.run(id);
    },
    postpone({ id }: Relist, nextAt: number): void {
      postpone.run(nextAt, id);
    },
    count: (): number => (isAny() ? (count.get()?.count ?? 0) : 0),
  };
}
