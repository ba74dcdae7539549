/**
 * The gateway's own database: opened, migrated, and its statements prepared once. Synchronous, so
 * a flow between two awaits is atomic. Plain SQL rather than a query builder: kysely's execution is
 * asynchronous, which would let requests interleave inside a transaction.
 */
import Database from "better-sqlite3";
import { migrate } from "./schema.ts";

export interface Store {
  /** The statement of this text, prepared at its first use. */
  prepare<Row = unknown>(sql: string): Database.Statement<unknown[], Row>;
  /** All or nothing. Flows never nest it. */
  transaction<T>(body: () => T): T;
  readonly database: Database.Database;
}

export function openDatabase(path: string): Database.Database {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  // A committed change survives the death of this process; after power loss the last ones may be
  // missing, but the store is never damaged.
  database.pragma("synchronous = NORMAL");
  database.pragma("cache_size = -65536");
  // Rows beyond the cache are read where the system keeps them, not copied page by page.
  database.pragma("mmap_size = 4294967296");
  database.pragma("wal_autocheckpoint = 8000");
  database.pragma("temp_store = MEMORY");
  return database;
}

/** `onCommit` is called after each transaction. */
export function createStore(database: Database.Database, onCommit: () => void = () => {}): Store {
  migrate(database);
  const statements = new Map<string, Database.Statement<unknown[], unknown>>();
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const rollback = database.prepare("ROLLBACK");
  return {
    database,
    prepare<Row>(sql: string) {
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = database.prepare<unknown[], unknown>(sql);
        statements.set(sql, statement);
      }
      return statement as Database.Statement<unknown[], Row>;
    },
    transaction<T>(body: () => T) {
      let result: T;
      begin.run();
      try {
        result = body();
        commit.run();
      } catch (error) {
        if (database.inTransaction) rollback.run();
        throw error;
      }
      onCommit();
      return result;
    },
  };
}
