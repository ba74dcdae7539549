/**
 * Opens the database of rows. It is synchronous by design: all code between two awaits is atomic. This file knows
 * neither the bytes of files nor the network.
 */
import { rowTime } from "../lib/clocks.ts";
import {
  type Connection,
  openSqlite,
  rowMaker,
  SqliteError,
  type Statement as SqlStatement,
} from "../lib/sqlite/index.ts";
import { loadCommitLog } from "./commit-log.ts";
import { isDamage } from "./damage.ts";
import { MIGRATIONS } from "./schema.ts";

export type { Connection };

export interface Statement<Row> {
  get(...parameters: unknown[]): Row | undefined;
  all(...parameters: unknown[]): Row[];
  run(...parameters: unknown[]): { changes: number; lastInsertRowid: number | bigint };
}

/**
 * Called when the disk did not take a change. Returns the error to throw; undefined: the disk may take the change now,
 * try again.
 */
export type OnDiskFailure = (error: unknown) => Error | undefined;

const handlers = new WeakMap<Connection, OnDiskFailure>();

/** Sets the handler. Without one, SQLite's error is thrown as it is. */
export function onDiskFailure(database: Connection, handler: OnDiskFailure): void {
  handlers.set(database, handler);
}

/** Called at the first sign that the file is not as SQLite wrote it. */
export type OnDamage = (error: unknown) => void;

const damageHandlers = new WeakMap<Connection, OnDamage>();

export function onDamage(database: Connection, handler: OnDamage): void {
  damageHandlers.set(database, handler);
}

/** Runs `work` and throws what it throws. Reports damage to the handler. */
export function noticingDamage<T>(database: Connection, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (isDamage(error)) damageHandlers.get(database)?.(error);
    throw error;
  }
}

/** SQLite's codes for a disk that is full, broken or read-only. It has rolled the whole change back by then. */
const DISK_FAILURES = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/;

export function isDiskFailure(error: unknown): boolean {
  return error instanceof SqliteError && DISK_FAILURES.test(error.code) && !isDamage(error);
}

/** Runs `work`, which is rolled back when it fails. Runs it again for as long as the handler asks for that. */
export function despiteDisk<T>(database: Connection, work: () => T): T {
  for (;;) {
    try {
      return work();
    } catch (error) {
      // Within a transaction only the whole transaction can be tried again.
      if (database.inTransaction || !isDiskFailure(error)) throw error;
      const handler = handlers.get(database);
      if (handler === undefined) throw error;
      const reason = handler(error);
      if (reason !== undefined) throw reason;
    }
  }
}

/**
 * Counts the changes of a table, or of another source of remembered answers, on a connection. Only this connection
 * changes it.
 */
interface Counter {
  count: number;
}

const countersOf = new WeakMap<Connection, Map<string, Counter>>();

function counterOf(database: Connection, what: string): Counter {
  const counters = countersOf.get(database) ?? new Map<string, Counter>();
  countersOf.set(database, counters);
  const counter = counters.get(what) ?? { count: 0 };
  counters.set(what, counter);
  return counter;
}

/** Forgets all remembered answers: after a rollback they are not valid any more. */
export function forgetRead(database: Connection): void {
  for (const counter of countersOf.get(database)?.values() ?? []) counter.count += 1;
}

/** A transaction that was asked for. It begins with its first change, so that one without a change costs nothing. */
export interface Wanted {
  begin: (() => void) | undefined;
}

const wantedOf = new WeakMap<Connection, Wanted>();

export function wantedTransaction(database: Connection): Wanted {
  const wanted = wantedOf.get(database) ?? { begin: undefined };
  wantedOf.set(database, wanted);
  return wanted;
}

/** The rows of a statement, as objects. */
function rowsOf<Row>(statement: SqlStatement): Pick<Statement<Row>, "get" | "all"> {
  if (!statement.reader) return statement as Pick<Statement<Row>, "get" | "all">;
  const raw = statement.raw(true) as SqlStatement<unknown[], unknown[]>;
  let make: ReturnType<typeof rowMaker> | undefined;
  const rowOf = (values: readonly unknown[]) => {
    make ??= rowMaker(statement.columns().map(({ name }) => name));
    return make(values) as Row;
  };
  return {
    get(...parameters) {
      const values = raw.get(...parameters);
      return values === undefined ? undefined : rowOf(values);
    },
    all: (...parameters) => raw.all(...parameters).map(rowOf),
  };
}

const CHANGE = /^\s*(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM) (\w+)/;

/**
 * Prepares once. Rows come as `Row`; the STRICT tables of schema.ts guarantee that. `touches`: the names whose
 * remembered answers are invalid once the statement has changed something, by default its table. A caller that passes
 * an empty list reports the change by itself.
 */
export function prepare<Row = unknown>(database: Connection, sql: string, touches?: readonly string[]): Statement<Row> {
  const statement = database.prepare(sql);
  const rows = rowsOf<Row>(statement);
  const table = CHANGE.exec(sql)?.[1];
  const touched = (touches ?? (table === undefined ? [] : [table])).map((what) => counterOf(database, what));
  const wanted = wantedTransaction(database);
  const change = (parameters: unknown[]) => {
    if (table === undefined) throw new Error(`no table is named as the one that changes: ${sql}`);
    const result = statement.run(...parameters);
    if (result.changes > 0) for (const counter of touched) counter.count += 1;
    return result;
  };
  const isChange = table !== undefined;
  return {
    get: (...parameters) =>
      noticingDamage(database, () => {
        if (isChange) wanted.begin?.();
        return rows.get(...parameters);
      }),
    all: (...parameters) =>
      noticingDamage(database, () => {
        if (isChange) wanted.begin?.();
        return rows.all(...parameters);
      }),
    run: (...parameters) =>
      noticingDamage(database, () => {
        wanted.begin?.();
        return database.inTransaction ? change(parameters) : despiteDisk(database, () => change(parameters));
      }),
  };
}

/** Prepares a statement that returns one column of all rows. That costs a fourth of whole rows. */
export function prepareColumn<Value>(database: Connection, sql: string): (...parameters: unknown[]) => Value[] {
  const statement = database.prepare(sql).pluck(true) as SqlStatement<unknown[], Value>;
  return (...parameters) => noticingDamage(database, () => statement.all(...parameters));
}

/**
 * Changes some columns of the row with an id. SQLite writes an index anew for each of its columns that the statement
 * names, so unchanged columns are not named. The caller reports the change to the remembered answers.
 */
export function prepareUpdates(
  database: Connection,
  table: string,
  key: string,
  columns: Readonly<Record<string, string>>,
): (id: number, values: Readonly<Record<string, unknown>>) => void {
  const known = new Map<string, Statement<unknown>>();
  return (id, values) => {
    const fields = Object.keys(values);
    if (fields.length === 0) return;
    const choice = fields.join();
    let statement = known.get(choice);
    if (statement === undefined) {
      const set = fields.map((field) => `${columns[field]} = ?`).join(", ");
      statement = prepare(database, `UPDATE ${table} SET ${set} WHERE ${key} = ?`, []);
      known.set(choice, statement);
    }
    statement.run(...fields.map((field) => values[field]), id);
  };
}

/** Adds a row. Null columns are not named, so that a row with few values needs few words. */
export function prepareInserts(
  database: Connection,
  table: string,
  columns: Readonly<Record<string, string>>,
): (values: Readonly<Record<string, unknown>>) => number {
  const known = new Map<string, Statement<unknown>>();
  return (values) => {
    const fields = Object.keys(columns).filter((field) => values[field] !== null);
    const choice = fields.join();
    let statement = known.get(choice);
    if (statement === undefined) {
      const names = fields.map((field) => columns[field]).join(", ");
      const places = fields.map(() => "?").join(", ");
      statement = prepare(database, `INSERT INTO ${table} (${names}) VALUES (${places})`, []);
      known.set(choice, statement);
    }
    return Number(statement.run(...fields.map((field) => values[field])).lastInsertRowid);
  };
}

/** Priority classes of rows that wait. 1: bulk, with much to send. */
export const PRIORITIES = [0, 1] as const;

/** Before the time of any row. */
export const BEFORE_FIRST = rowTime(Number.MIN_SAFE_INTEGER);

/** The fields of `next` that differ from `current`. */
export function differences<Row extends object>(current: Row, next: Row): Partial<Row> {
  const found: Partial<Row> = {};
  for (const field of Object.keys(next) as (keyof Row)[]) {
    if (next[field] !== current[field]) found[field] = next[field];
  }
  return found;
}

/** The number of newest answers to each question that are remembered. As many older ones are kept beside them. */
const REMEMBERED = 256;

export interface Remembered<Key, Answer> {
  (key: Key): Answer;
  /** Sets the answer after a change. */
  tell(key: Key, answer: Answer): void;
  /** Drops the answer after a change. */
  drop(key: Key): void;
  /** Returns the answer if it is remembered. */
  known(key: Key): Answer | undefined;
}

/**
 * Returns a function like `read` that remembers its answers. An answer is read again only after a change of one of
 * these names (mostly tables; see `touches` of `prepare`), or after `tell` or `drop`. Code asks for the same few rows
 * again and again. An answer is shared and must not be changed.
 */
export function remember<Key extends number | string, Answer>(
  database: Connection,
  of: readonly string[],
  read: (key: Key) => Answer,
): Remembered<Key, Answer> {
  const counters = of.map((what) => counterOf(database, what));
  let recent = new Map<Key, Answer>();
  /**
   * The answers that were recent before. One that is asked for becomes recent again. Removing the oldest answers of one
   * map, one by one, would cost far more.
   */
  let older = new Map<Key, Answer>();
  let asOf = -1;

  function keepUp(): void {
    let now = 0;
    for (const { count } of counters) now += count;
    if (now === asOf) return;
    recent.clear();
    older.clear();
    asOf = now;
  }

  function keep(key: Key, answer: Answer): void {
    recent.set(key, answer);
    if (recent.size < REMEMBERED) return;
    older = recent;
    recent = new Map();
  }

  function tell(key: Key, answer: Answer): void {
    keepUp();
    keep(key, answer);
  }

  function ask(key: Key): Answer {
    keepUp();
    const known = recent.get(key);
    if (known !== undefined || recent.has(key)) return known as Answer;
    const before = older.get(key);
    const isKnown = before !== undefined || older.has(key);
    const answer = isKnown ? (before as Answer) : read(key);
    tell(key, answer);
    return answer;
  }

  return Object.assign(ask, {
    tell,
    known(key: Key): Answer | undefined {
      keepUp();
      return recent.get(key) ?? older.get(key);
    },
    drop(key: Key): void {
      keepUp();
      recent.delete(key);
      older.delete(key);
    },
  });
}

/**
 * Returns a function that tells whether the table has a row. It reads once after each change of the table: many tables
 * are empty most of the time.
 */
export function rememberAny(database: Connection, table: string): () => boolean {
  const one = prepare<{ one: number }>(database, `SELECT 1 AS one FROM ${table} LIMIT 1`);
  const isAny = remember(database, [table], (_: number) => one.get() !== undefined);
  return () => isAny(0);
}

/** The database belongs to another process (commit-log.ts). */
export function isInUse(error: unknown): boolean {
  return error instanceof SqliteError && error.code.startsWith("SQLITE_BUSY");
}

/** A later release has changed the database: this release cannot read it. */
export class LaterDatabase extends Error {}

/** Milliseconds. A program that reads the database between two daemons is soon gone. */
const IN_USE_MS = 5_000;

/**
 * Opens a path, or ":memory:". Waits a moment for another program that has the database open. Throws an Error that
 * names the cause when the file is not a database of wsfs, and LaterDatabase when a later release wrote it.
 * `onMigrated` is called within each transaction that migrates the database. The earlier release cannot read it from
 * then on.
 */
export function openDatabase(path: string, onMigrated: (database: Connection) => void = () => {}): Connection {
  loadCommitLog();
  const database = openSqlite(path, { timeout: IN_USE_MS });
  try {
    prepareDatabase(database, onMigrated);
  } catch (error) {
    // Without this the garbage collector would close it later, and that would remove the log of another database.
    database.close();
    throw error;
  }
  return database;
}

function prepareDatabase(database: Connection, onMigrated: (database: Connection) => void): void {
  // The page size of a new database. A commit writes whole pages to the log, and a new file touches two dozen of them.
  database.pragma("page_size = 1024");
  database.pragma("journal_mode = WAL");
  // Commits survive a crash of the process without a sync. For fsync(2) of a program, the write-ahead log itself is
  // synced.
  database.pragma("synchronous = NORMAL");
  // A checkpoint syncs the disk: checkpoint-worker.ts makes them, not the thread that answers programs.
  database.pragma("wal_autocheckpoint = 0");
  database.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
  database.pragma("foreign_keys = ON");
  database.pragma("cache_size = -32768");
  // To undo a part of a change, SQLite keeps a few pages as they were. No file is made for them.
  database.pragma("temp_store = MEMORY");
  migrate(database, onMigrated);
  // The thread that answers programs never waits for a lock.
  database.pragma("busy_timeout = 0");
}

/**
 * Copies the content of the write-ahead log into the database file and syncs the disk. Leaves out frames that another
 * connection still reads or copies itself. Throws an SqliteError when the disk fails; the log then keeps its content.
 */
export function checkpoint(database: Connection): void {
  noticingDamage(database, () => database.pragma("wal_checkpoint(PASSIVE)"));
}

function migrate(database: Connection, onMigrated: (database: Connection) => void): void {
  const version = Number(database.pragma("user_version", { simple: true }));
  if (version > MIGRATIONS.length) {
    throw new LaterDatabase(
      `the database has schema ${version}, newer than ${MIGRATIONS.length}, the newest this wsfs knows`,
    );
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    database.transaction(() => {
      database.exec(sql);
      database.pragma(`user_version = ${index + 1}`);
      if (version > 0) onMigrated(database);
    })();
  }
}
