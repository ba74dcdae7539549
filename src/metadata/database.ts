/**
 * Opens the database of what we know. Synchronous by design: what happens between two awaits is
 * atomic. Knows nothing of files' bytes and of the network.
 */
import Database from "better-sqlite3";
import { isDamage } from "./damage.ts";
import { MIGRATIONS } from "./schema.ts";

export type Connection = Database.Database;

export interface Statement<Row> {
  get(...parameters: unknown[]): Row | undefined;
  all(...parameters: unknown[]): Row[];
  run(...parameters: unknown[]): { changes: number; lastInsertRowid: number | bigint };
}

/** Asked when the disk did not take a change. Undefined: it may by now, try again; else what to throw. */
export type OnDiskFailure = (error: unknown) => Error | undefined;

const handlers = new WeakMap<Connection, OnDiskFailure>();

/** Who is asked from now on; until then what SQLite says is thrown as it is. */
export function onDiskFailure(database: Connection, handler: OnDiskFailure): void {
  handlers.set(database, handler);
}

/** Told of the first signs that the file is not what SQLite wrote. */
export type OnDamage = (error: unknown) => void;

const damageHandlers = new WeakMap<Connection, OnDamage>();

export function onDamage(database: Connection, handler: OnDamage): void {
  damageHandlers.set(database, handler);
}

/** Tells of damage; throws what `work` throws. */
export function noticingDamage<T>(database: Connection, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (isDamage(error)) damageHandlers.get(database)?.(error);
    throw error;
  }
}

/** SQLite's words for a disk that is full, broken or read-only; it has undone the whole change by then. */
const DISK_FAILURES = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/;

export function isDiskFailure(error: unknown): boolean {
  return error instanceof Database.SqliteError && DISK_FAILURES.test(error.code) && !isDamage(error);
}

/** Runs `work`, which is undone when it fails, again for as long as the handler has done something about it. */
export function despiteDisk<T>(database: Connection, work: () => T): T {
  for (;;) {
    try {
      return work();
    } catch (error) {
      // Within a transaction only the whole can be tried again.
      if (database.inTransaction || !isDiskFailure(error)) throw error;
      const handler = handlers.get(database);
      if (handler === undefined) throw error;
      const reason = handler(error);
      if (reason !== undefined) throw reason;
    }
  }
}

/** How often each table was changed on a connection, which is the only one that changes it. */
const changesOf = new WeakMap<Connection, Map<string, number>>();

function countsOf(database: Connection): Map<string, number> {
  const counts = changesOf.get(database) ?? new Map<string, number>();
  changesOf.set(database, counts);
  return counts;
}

/** A transaction was undone: nothing that was read counts any more. */
export function forgetRead(database: Connection): void {
  const counts = countsOf(database);
  for (const [table, count] of counts) counts.set(table, count + 1);
}

const CHANGE = /^\s*(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM) (\w+)/;

/** Prepares once; rows come as `Row`, which the STRICT tables of schema.ts hold true. */
export function prepare<Row = unknown>(database: Connection, sql: string): Statement<Row> {
  const statement = database.prepare(sql) as unknown as Statement<Row>;
  const counts = countsOf(database);
  const table = CHANGE.exec(sql)?.[1];
  const change = (parameters: unknown[]) => {
    if (table === undefined) throw new Error(`no table is named as the one that changes: ${sql}`);
    counts.set(table, (counts.get(table) ?? 0) + 1);
    return statement.run(...parameters);
  };
  return {
    get: (...parameters) => noticingDamage(database, () => statement.get(...parameters)),
    all: (...parameters) => noticingDamage(database, () => statement.all(...parameters)),
    run: (...parameters) =>
      noticingDamage(database, () =>
        database.inTransaction ? change(parameters) : despiteDisk(database, () => change(parameters)),
      ),
  };
}

/** Answers that are remembered at once; more are of no use between two changes of one row. */
const REMEMBERED = 64;

/**
 * `read`, which asks these tables alone, asked no second time until one of them changes: one look at
 * a row asks for the same few rows again and again. An answer is shared, and not to be changed.
 */
export function remember<Key extends number | string, Answer>(
  database: Connection,
  tables: readonly string[],
  read: (key: Key) => Answer,
): (key: Key) => Answer {
  const counts = countsOf(database);
  const answers = new Map<Key, Answer>();
  let asOf = -1;
  return (key) => {
    let now = 0;
    for (const table of tables) now += counts.get(table) ?? 0;
    if (now !== asOf || answers.size >= REMEMBERED) answers.clear();
    asOf = now;
    const known = answers.get(key);
    if (known !== undefined || answers.has(key)) return known as Answer;
    const answer = read(key);
    answers.set(key, answer);
    return answer;
  };
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
