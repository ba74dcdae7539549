/**
 * Detached files. A program has such a file open for writing while its name was removed elsewhere, or got another
 * content. The file is an inode without a name. Its row has the former path, and is removed with the inode.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare, remember, rememberAny } from "./database.ts";
import type { NameInFolder } from "./entries.ts";
import type { InodeId } from "./ids.ts";

export interface DetachedFileRow {
  readonly inode: InodeId;
  /** The names of its former path, from the root down. */
  readonly way: readonly NameInFolder[];
  /** True: the name is gone. False: another file has it. */
  readonly isRemoved: boolean;
  /** The hash of its content when it became detached. Null: not known. */
  readonly hash: string | null;
  /** The time of the first change of its content after that, in row time. Null: there was none. */
  readonly dirtySince: RowTime | null;
}

interface Row extends Omit<DetachedFileRow, "way" | "isRemoved"> {
  readonly way: string;
  readonly isRemoved: number;
}

const COLUMNS = "inode, way, is_removed AS isRemoved, hash, dirty_since AS dirtySince";

const decode = (row: Row): DetachedFileRow => ({
  ...row,
  way: JSON.parse(row.way) as NameInFolder[],
  isRemoved: row.isRemoved === 1,
});

export function createDetachedFiles(database: Connection) {
  const byInode = prepare<Row>(database, `SELECT ${COLUMNS} FROM overtaken WHERE inode = ?`);
  const every = prepare<Row>(database, `SELECT ${COLUMNS} FROM overtaken ORDER BY inode`);
  const insert = prepare(
    database,
    "INSERT INTO overtaken (inode, way, is_removed, hash) VALUES (@inode, @way, @isRemoved, @hash)",
  );
  const dirty = prepare(database, "UPDATE overtaken SET dirty_since = ? WHERE inode = ?");
  const remove = prepare(database, "DELETE FROM overtaken WHERE inode = ?");
  const isAny = rememberAny(database, "overtaken");
  // Removing an inode removes this row in the table only. Its answer may stay: the inode's number is never used again.
  const get = remember(database, ["overtaken"], (inode: InodeId) => {
    const row = byInode.get(inode);
    return row === undefined ? undefined : decode(row);
  });
  return {
    get: (inode: InodeId): DetachedFileRow | undefined => (isAny() ? get(inode) : undefined),
    all: (): DetachedFileRow[] => (isAny() ? every.all().map(decode) : []),
    add({ inode, way, isRemoved, hash }: Omit<DetachedFileRow, "dirtySince">): void {
      insert.run({ inode, way: JSON.stringify(way), isRemoved: isRemoved ? 1 : 0, hash });
    },
    /** Null: the file has its former bytes again. Does nothing for an inode that is no detached file. */
    setDirtySince(inode: InodeId, since: RowTime | null): void {
      if (isAny()) dirty.run(since, inode);
    },
    remove(inode: InodeId): void {
      remove.run(inode);
    },
  };
}
