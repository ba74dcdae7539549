/** Entries: the names in folders. */
import { type Connection, prepare } from "./database.ts";

export interface Entry {
  readonly id: number;
  /** Inode of the folder. */
  readonly parent: number;
  readonly name: string;
  /** Where the gateway's name differs from the shown one. */
  readonly gatewayName: string | null;
  readonly inode: number;
}

const COLUMNS = "id, parent, name, gateway_name AS gatewayName, inode";

export function createEntries(database: Connection) {
  const byId = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE id = ?`);
  const byName = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE parent = ? AND name = ?`);
  const after = prepare<Entry>(
    database,
    `SELECT ${COLUMNS} FROM entry WHERE parent = ? AND id > ? ORDER BY id LIMIT ?`,
  );
  const ofInode = prepare<Entry>(database, `SELECT ${COLUMNS} FROM entry WHERE inode = ? ORDER BY id`);
  const first = prepare<{ one: number }>(database, "SELECT 1 AS one FROM entry WHERE parent = ? LIMIT 1");
  const insert = prepare(database, "INSERT INTO entry (parent, name, gateway_name, inode) VALUES (?, ?, ?, ?)");
  const place = prepare(database, "UPDATE entry SET parent = ?, name = ?, gateway_name = ? WHERE id = ?");
  const retarget = prepare(database, "UPDATE entry SET inode = ? WHERE id = ?");
  const remove = prepare(database, "DELETE FROM entry WHERE id = ?");
  const links = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM entry WHERE inode = ?");

  return {
    get: (id: number): Entry | undefined => byId.get(id),
    find: (parent: number, name: string): Entry | undefined => byName.get(parent, name),
    /** Entries of a folder with an id above `cookie`, in order of id. */
    list: (parent: number, cookie: number, limit: number): Entry[] => after.all(parent, cookie, limit),
    ofInode: (inode: number): Entry[] => ofInode.all(inode),
    links: (inode: number): number => links.get(inode)?.count ?? 0,
    isEmpty: (parent: number): boolean => first.get(parent) === undefined,
    create(parent: number, name: string, inode: number, gatewayName: string | null = null): Entry {
      const id = Number(insert.run(parent, name, gatewayName, inode).lastInsertRowid);
      return { id, parent, name, gatewayName, inode };
    },
    move(id: number, parent: number, name: string, gatewayName: string | null = null): void {
      place.run(parent, name, gatewayName, id);
    },
    setInode(id: number, inode: number): void {
      retarget.run(inode, id);
    },
    remove(id: number): void {
      remove.run(id);
    },
  };
}
