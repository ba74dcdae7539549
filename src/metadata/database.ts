/**
 * Opens the database of what we know. Synchronous by design: what happens between two awaits is
 * atomic. Knows nothing of files' bytes and of the network.
 */
import Database from "better-sqlite3";
import { MIGRATIONS } from "./schema.ts";

export type Connection = Database.Database;

export interface Statement<Row> {
  get(...parameters: unknown[]): Row | undefined;
  all(...parameters: unknown[]): Row[];
  run(...parameters: unknown[]): { changes: number; lastInsertRowid: number | bigint };
}

/** Prepares once; rows come as `Row`, which the STRICT tables of schema.ts hold true. */
export function prepare<Row = unknown>(database: Connection, sql: string): Statement<Row> {
  return database.prepare(sql) as unknown as Statement<Row>;
}

/** A path, or ":memory:". Throws an Error that names the cause when the file is no such database. */
export function openDatabase(path: string): Connection {
  const database = new Database(path, { timeout: 0 });
  database.pragma("journal_mode = WAL");
  // Commits survive a crash of the process without a sync; fsync(2) of a program syncs the WAL itself.
  database.pragma("synchronous = NORMAL");
  // A checkpoint syncs the disk: checkpoint-worker.ts makes them, not the thread that answers programs.
  database.pragma("wal_autocheckpoint = 0");
  database.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
  database.pragma("foreign_keys = ON");
  database.pragma("cache_size = -65536");
  migrate(database);
  return database;
}

function migrate(database: Connection): void {
  const version = Number(database.pragma("user_version", { simple: true }));
  if (version > MIGRATIONS.length) {
    throw new Error(`the database has schema ${version}, newer than ${MIGRATIONS.length}, the newest this wsfs knows`);
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    database.transaction(() => {
      database.exec(sql);
      database.pragma(`user_version = ${index + 1}`);
    })();
  }
}
