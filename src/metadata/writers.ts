/**
 * Inodes that programs have open for writing. After a crash of the daemon only these are checked. The beginning of a
 * writer is stored before it may write. Its end may be stored later, because checking one more inode costs little. So
 * the end is stored with the next transaction that changes something.
 */
import { type Connection, prepare, remember } from "./database.ts";
import type { InodeId } from "./ids.ts";

export function createWriters(database: Connection) {
  const one = prepare(database, "SELECT 1 FROM writing WHERE inode = ?");
  const insert = prepare(database, "INSERT OR IGNORE INTO writing (inode) VALUES (?)", []);
  const remove = prepare(database, "DELETE FROM writing WHERE inode = ?", []);
  const removeAll = prepare(database, "DELETE FROM writing");
  const isNoted = remember(database, ["writing"], (inode: InodeId) => one.get(inode) !== undefined);
  /** Ended writers whose end is not stored yet. */
  const ended = new Set<InodeId>();
  /** The ended writers whose end is in the transaction that is being committed. */
  let stored: InodeId[] = [];

  return {
    /** Begins a writer. Until `end`, the rows of the inode may be older than its file. */
    begin(inode: InodeId): void {
      ended.delete(inode);
      if (isNoted(inode)) return;
      insert.run(inode);
      isNoted.tell(inode, true);
    },
    end(inode: InodeId): void {
      ended.add(inode);
    },
    /** Ends all writers. Must be called at a start, once each of their inodes is checked. */
    endAll(): void {
      ended.clear();
      removeAll.run();
    },
    /** Stores the ends. Must be called within a transaction that is about to be committed. */
    tellEnded(): void {
      stored = [...ended];
      for (const inode of stored) {
        remove.run(inode);
        isNoted.tell(inode, false);
      }
    },
    /** Must be called after that transaction was committed. */
    committed(): void {
      for (const inode of stored) ended.delete(inode);
    },
  };
}
