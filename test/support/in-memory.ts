/** Databases in memory that begin as copies of one, so that migrations run once a process. */
import { type Connection, openSqlite } from "../../src/lib/sqlite/index.ts";
import { openDatabase } from "../../src/metadata/database.ts";

/** `migrate`: makes the tables of an empty database. It is called once. */
export function copiesOf(migrate: (database: Connection) => void): () => Connection {
  return copiesOfOpened(() => {
    const first = openSqlite(":memory:");
    migrate(first);
    return first;
  }, openCopy);
}

/** The rows of a mount that has none yet. */
export const openNoRows = copiesOfOpened(() => openDatabase(":memory:"), openRows);

/** The rows of a mount, as `serialize` gave them. */
export function openRows(rows: Uint8Array): Connection {
  const copy = openCopy(rows);
  copy.pragma("foreign_keys = ON");
  copy.pragma("temp_store = MEMORY");
  return copy;
}

function openCopy(rows: Uint8Array): Connection {
  return openSqlite(Buffer.from(rows));
}

function copiesOfOpened(open: () => Connection, copy: (rows: Uint8Array) => Connection): () => Connection {
  let rows: Uint8Array | undefined;
  return () => {
    if (rows === undefined) {
      const first = open();
      rows = first.serialize();
      first.close();
    }
    return copy(rows);
  };
}
