/** Databases in memory that begin as copies of one, so that migrations run once a process. */
import { type Connection, openSqlite } from "../../src/lib/sqlite/index.ts";

/** `migrate`: makes the tables of an empty database. It is called once. */
export function copiesOf(migrate: (database: Connection) => void): () => Connection {
  let rows: Uint8Array | undefined;
  return () => {
    if (rows === undefined) {
      const first = openSqlite(":memory:");
      migrate(first);
      rows = first.serialize();
      first.close();
    }
    return openSqlite(Buffer.from(rows));
  };
}
