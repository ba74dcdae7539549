/**
 * The database of rows: it is opened, its statements are prepared, and answers are remembered. It is synchronous by
 * design: all code between two awaits is atomic. This file knows neither the bytes of files nor the network.
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
 * Called when the disk did not take a change. Returns the error to throw. Undefined: the change is tried again, because
 * the disk may take it now.
 */
type OnDiskFailure = (error: unknown) => Error | undefined;

const handlers = new WeakMap<Connection, OnDiskFailure>();

/** Sets the handler. Without one, SQLite's error is thrown as it is. */
export function onDiskFailure(database: Connection, handler: OnDiskFailure): void {
  handlers.set(database, handler);
}

/** Called at the first sign that the file is not as SQLite wrote it. */
type OnDamage = (error: unknown) => void;

const damageHandlers = new WeakMap<Connection, OnDamage>();

export function onDamage(database: Connection, handler: OnDamage): void {
  damageHandlers.set(database, handler);
}

/** Runs `work`. Reports damage to the handler, and throws the error as it is. */
export function noticingDamage<T>(database: Connection, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (isDamage(error)) damageHandlers.get(database)?.(error);
    throw error;
  }
}

/** SQLite's codes for a disk that is full, broken or read-only. SQLite has then rolled the whole change back. */
const DISK_FAILURES = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/;

export function isDiskFailure(error: unknown): boolean {
  return error instanceof SqliteError && DISK_FAILURES.test(error.code) && !isDamage(error);
}

/**
 * Runs `work`, which is rolled back when it fails. After a failure of the disk it runs again if the handler says so.
 */
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

/** Counts the changes of a table, or of another source of remembered answers. No other connection changes the table. */
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

/** Forgets all remembered answers, which are wrong after a rollback. */
export function forgetRead(database: Connection): void {
  for (const counter of countersOf.get(database)?.values() ?? []) counter.count += 1;
}

/** A transaction that is to begin with its first change, so that a transaction without a change costs nothing. */
interface Wanted {
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
 * Prepares a statement. Its rows have the type `Row`, which the STRICT tables of schema.ts guarantee. `touches`: a
 * change by the statement makes the remembered answers of these names invalid; by default those of its table. A caller
 * that passes an empty list updates the remembered answers itself.
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

/** Prepares a statement that returns one column of all rows, at a fourth of the cost of whole rows. */
export function prepareColumn<Value>(database: Connection, sql: string): (...parameters: unknown[]) => Value[] {
  const statement = database.prepare(sql).pluck(true) as SqlStatement<unknown[], Value>;
  return (...parameters) => noticingDamage(database, () => statement.all(...parameters));
}

/**
 * Changes some columns of the row with an id. SQLite writes an index anew if the statement names one of its columns, so
 * unchanged columns are not named. The caller updates the remembered answers.
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

/** Adds a row and returns its id. Null columns are not named, which makes rows with few values cheaper. */
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

/** The number of recent answers of a `remember` function. It keeps up to as many older ones. */
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
 * Returns a function like `read` that remembers its answers, because code asks for the same few rows again and again.
 * All answers are forgotten after a change of one of the names `of` (mostly tables; see `touches` of `prepare`). `tell`
 * and `drop` change a single one. An answer is shared and must not be changed.
 */
export function remember<Key extends number | string, Answer>(
  database: Connection,
  of: readonly string[],
  read: (key: Key) => Answer,
): Remembered<Key, Answer> {
  const counters = of.map((what) => counterOf(database, what));
  let recent = new Map<Key, Answer>();
  /**
   * The answers that were recent before. An answer that is asked for becomes recent again. Two maps cost far less than
   * removing the oldest answers of one map one by one.
   */
  let older = new Map<Key, Answer>();
  let asOf: number | undefined;

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
 * Returns a function that is true if the table has a row. It reads the table once after each change. Many tables are
 * empty most of the time, and then need no further query.
 */
export function rememberAny(database: Connection, table: string): () => boolean {
  const one = prepare<{ one: number }>(database, `SELECT 1 AS one FROM ${table} LIMIT 1`);
  const isAny = remember(database, [table], (_: number) => one.get() !== undefined);
  return () => isAny(0);
}

/** True if another process has the database (commit-log.ts). */
export function isInUse(error: unknown): boolean {
  return error instanceof SqliteError && error.code.startsWith("SQLITE_BUSY");
}

/** A later release has migrated the database, so this release cannot read it. */
export class LaterDatabase extends Error {}

/** The longest wait for another program, in milliseconds. Programs that read between two daemons end soon. */
const IN_USE_MS = 5_000;

/**
 * Opens a path, or ":memory:". Waits a moment for another program that has the database open. Throws an SqliteError
 * when the file cannot be opened, is in use (`isInUse`) or is no database; LaterDatabase when a later release wrote it;
 * an Error when the extension (commit-log.ts) was not built. `onMigrated` is called within each transaction that
 * migrates the database, after which the earlier release cannot read it.
 */
export function openDatabase(path: string, onMigrated: (database: Connection) => void = () => {}): Connection {
  loadCommitLog();
  const database = openSqlite(path, { timeout: IN_USE_MS });
  try {
    prepareDatabase(database, onMigrated);
  } catch (error) {
    // Otherwise the garbage collector would close it later, and remove the log of a database that was opened since.
    database.close();
    throw error;
  }
  return database;
}

function prepareDatabase(database: Connection, onMigrated: (database: Connection) => void): void {
  // For a new database. A commit writes whole pages to the log, and a new file changes two dozen of them.
  database.pragma("page_size = 1024");
  database.pragma("journal_mode = WAL");
  // Commits survive a crash of the process without a sync. For fsync(2) of a program, the write-ahead log itself is
  // synced.
  database.pragma("synchronous = NORMAL");
  // A checkpoint syncs the disk, so checkpoint-worker.ts makes it, not the thread that answers programs.
  database.pragma("wal_autocheckpoint = 0");
  database.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
  database.pragma("foreign_keys = ON");
  database.pragma("cache_size = -32768");
  // SQLite keeps the pages that undo a part of a change in memory, not in a file.
  database.pragma("temp_store = MEMORY");
  migrate(database, onMigrated);
  // The thread that answers programs never waits for a lock.
  database.pragma("busy_timeout = 0");
}

/**
 * Makes a checkpoint: copies the content of the write-ahead log into the database file and syncs the disk. Leaves out
 * frames that another connection still reads or copies itself. Throws an SqliteError when the disk fails; the log then
 * keeps its content.
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
