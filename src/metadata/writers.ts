/**
 * Inodes that programs have open for writing, so that after a crash of the daemon these alone are looked
 * at. It is noted before a writer is let in, in the transaction of that; its end may be noted any
 * time later (to look at one more costs little), so it goes with the next transaction that changes something.
 */
import { type Connection, prepare, remember } from "./database.ts";
import type { InodeId } from "./ids.ts";

export function createWriters(database: Connection) {
  const one = prepare(database, "SELECT 1 FROM writing WHERE inode = ?");
  const insert = prepare(database, "INSERT OR IGNORE INTO writing (inode) VALUES (?)", []);
  const remove = prepare(database, "DELETE FROM writing WHERE inode = ?", []);
  const removeAll = prepare(database, "DELETE FROM writing");
  const isNoted = remember(database, ["writing"], (inode: InodeId) => one.get(inode) !== undefined);
  /** Not noted yet. */
  const ended = new Set<InodeId>();
  /** … except by a transaction that is not committed yet. */
  let told: InodeId[] = [];

  return {
    /** The rows of it may be behind its file until `end`. */
    begin(inode: InodeId): void {
      ended.delete(inode);
      if (isNoted(inode)) return;
      insert.run(inode);
      isNoted.tell(inode, true);
    },
    end(inode: InodeId): void {
      ended.add(inode);
    },
    /** After a start, when all of them have been looked at. */
    endAll(): void {
      ended.clear();
      removeAll.run();
    },
    /** Within a transaction that is about to be committed. */
    tellEnded(): void {
      told = [...ended];
      for (const inode of told) {
        remove.run(inode);
        isNoted.tell(inode, false);
      }
    },
    /** It is committed. */
    told(): void {
      for (const inode of told) ended.delete(inode);
    },
  };
}
