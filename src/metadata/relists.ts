/**
 * Folders that are known and yet must be listed again, because news of them may have been told when nobody here
 * listened. They are rows, so that they are committed with what asks for them: a crash in between must not lose them.
 */
import { type Connection, prepare, rememberAny } from "./database.ts";
import type { InodeId } from "./ids.ts";

export interface Relist {
  readonly id: number;
  /** The inode of the folder. */
  readonly folder: InodeId;
}

export function createRelists(database: Connection) {
  // A folder that is asked for again gets another id: a list that is under way does not answer for it.
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
    /** Of the folders that are due, the one that has waited longest. */
    next: (now: number): Relist | undefined => (isAny() ? next.get(now) : undefined),
    /** Its list is in the rows. If it was asked for again meanwhile, it stays. */
    done({ id }: Relist): void {
      remove.run(id);
    },
    postpone({ id }: Relist, nextAt: number): void {
      postpone.run(nextAt, id);
    },
    count: (): number => (isAny() ? (count.get()?.count ?? 0) : 0),
  };
}
