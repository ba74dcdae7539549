/**
 * SQLite by Node's own module, for a Node that better-sqlite3 has no build for. Where the two differ, it behaves like
 * better-sqlite3: names of errors, a database that must exist, the wait for a lock, nested transactions.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SqliteError } from "./error.ts";
import { resultCodeName } from "./result-codes.ts";
import { type RowMaker, rowMaker } from "./row-maker.ts";
import type { Connection, Driver, RunResult, Statement, Transaction } from "./types.ts";

/** The parts of `node:sqlite` that are used. The types of the oldest supported Node lack them. */
interface NativeStatement {
  get(...parameters: unknown[]): readonly unknown[] | undefined;
  all(...parameters: unknown[]): (readonly unknown[])[];
  run(...parameters: unknown[]): RunResult;
  iterate(...parameters: unknown[]): IterableIterator<readonly unknown[]>;
  columns(): { readonly name: string }[];
  setReturnArrays(isOn: boolean): void;
  setReadBigInts(isOn: boolean): void;
  setAllowUnknownNamedParameters(isOn: boolean): void;
}

interface NativeDatabase {
  readonly isOpen: boolean;
  readonly isTransaction: boolean;
  prepare(sql: string): NativeStatement;
  exec(sql: string): void;
  loadExtension(path: string): void;
  function(name: string, work: (...values: unknown[]) => unknown): void;
  serialize?(): Uint8Array;
  deserialize?(image: Uint8Array): void;
  close(): void;
}

interface NativeModule {
  readonly DatabaseSync: new (path: string | URL, options: Readonly<Record<string, unknown>>) => NativeDatabase;
  readonly StatementSync: { readonly prototype: Partial<NativeStatement> };
  backup?(database: NativeDatabase, path: string, options: { readonly rate: number }): Promise<number>;
}

/** The default of better-sqlite3. By default, `node:sqlite` does not wait for locks. */
const TIMEOUT_MS = 5_000;
const OLDEST_NODE = "22.16";

let found: NativeModule | undefined;

/** Undefined when this Node has no such module. */
function nativeModule(): NativeModule | undefined {
  found ??= withoutItsWarning(() => process.getBuiltinModule("node:sqlite") as NativeModule | undefined);
  return found;
}

/**
 * Without this, Node warns on stderr once per process that the module may change. Tests check which releases have the
 * used parts.
 */
function withoutItsWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...more: unknown[]) => {
    if (!String(warning).startsWith("SQLite is an experimental"))
      Reflect.apply(emitWarning, process, [warning, ...more]);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** An error of SQLite in the form of better-sqlite3. */
function asSqliteError(error: unknown): unknown {
  if (!(error instanceof Error && "errcode" in error && typeof error.errcode === "number")) return error;
  return new SqliteError(error.message, resultCodeName(error.errcode));
}

function withSqliteErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw asSqliteError(error);
  }
}

/**
 * Parameters as better-sqlite3 takes them: undefined becomes null. The array itself may be changed. An object belongs to
 * the caller and must not be changed.
 */
function bound(parameters: unknown[]): unknown[] {
  for (let index = 0; index < parameters.length; index += 1) {
    const value = parameters[index];
    if (value === undefined) parameters[index] = null;
    else if (isNamed(value) && Object.values(value).includes(undefined)) {
      parameters[index] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, one ?? null]));
    }
  }
  return parameters;
}

function isNamed(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

function statementOf(native: NativeStatement, source: string): Statement {
  native.setReturnArrays(true);
  // An object may have more fields than the statement uses.
  native.setAllowUnknownNamedParameters(true);
  let make: RowMaker | undefined;
  const asObject: RowMaker = (values) => {
    // Made with the first row, because SQLite compiles the statement again when the tables have changed.
    make ??= rowMaker(native.columns().map(({ name }) => name));
    return make(values);
  };
  const asValue: RowMaker = (values) => values[0];
  const asArray: RowMaker = (values) => values;
  let shape = asObject;
  const statement: Statement = {
    source,
    reader: native.columns().length > 0,
    get(...parameters) {
      try {
        const values = native.get(...bound(parameters));
        return values === undefined ? undefined : shape(values);
      } catch (error) {
        throw asSqliteError(error);
      }
    },
    all(...parameters) {
      try {
        const rows = native.all(...bound(parameters));
        return shape === asArray ? rows : rows.map(shape);
      } catch (error) {
        throw asSqliteError(error);
      }
    },
    run(...parameters) {
      try {
        return native.run(...bound(parameters));
      } catch (error) {
        throw asSqliteError(error);
      }
    },
    iterate: (...parameters) =>
      shaped(
        withSqliteErrors(() => native.iterate(...bound(parameters))),
        shape,
      ),
    pluck(isOn = true) {
      shape = isOn ? asValue : asObject;
      return statement;
    },
    raw(isOn = true) {
      shape = isOn ? asArray : asObject;
      return statement;
    },
    safeIntegers(isOn = true) {
      native.setReadBigInts(isOn);
      return statement;
    },
    columns: () => native.columns(),
  };
  return statement;
}

function* shaped(rows: IterableIterator<readonly unknown[]>, shape: RowMaker): IterableIterator<unknown> {
  try {
    for (const values of rows) yield shape(values);
  } catch (error) {
    throw asSqliteError(error);
  }
}

function connectionOf(native: NativeDatabase, { backup }: NativeModule): Connection {
  const prepare = (sql: string) => withSqliteErrors(() => statementOf(native.prepare(sql), sql));
  const known = new Map<string, Statement>();
  const run = (sql: string) => {
    const statement = known.get(sql) ?? prepare(sql);
    known.set(sql, statement);
    statement.run();
  };

  function inTransaction<T>(begin: string, work: () => T): T {
    const [before, after, undo] = native.isTransaction
      ? ["SAVEPOINT nested", "RELEASE nested", "ROLLBACK TO nested"]
      : [begin, "COMMIT", "ROLLBACK"];
    run(before);
    try {
      const result = work();
      run(after);
      return result;
    } catch (error) {
      // If the disk is full or fails, SQLite has rolled everything back by itself.
      if (native.isTransaction) {
        run(undo);
        if (undo !== "ROLLBACK") run(after);
      }
      throw error;
    }
  }

  return {
    get inTransaction() {
      return native.isOpen && native.isTransaction;
    },
    get open() {
      return native.isOpen;
    },
    prepare: prepare as Connection["prepare"],
    exec: (sql) => withSqliteErrors(() => native.exec(sql)),
    pragma(sql, { simple = false } = {}) {
      const rows = prepare(`PRAGMA ${sql}`);
      if (!simple) return rows.all();
      return rows.pluck().get();
    },
    transaction<Parameters extends unknown[], Result>(work: (...parameters: Parameters) => Result) {
      const by =
        (begin: string) =>
        (...parameters: Parameters) =>
          inTransaction(begin, () => work(...parameters));
      const transaction: Transaction<Parameters, Result> = Object.assign(by("BEGIN"), {
        immediate: by("BEGIN IMMEDIATE"),
      });
      return transaction;
    },
    function: (name, work) => native.function(name, work),
    async backup(path, { progress }) {
      try {
        return await backup?.(native, path, { rate: progress() });
      } catch (error) {
        throw asSqliteError(error);
      }
    },
    loadExtension: (path) => withSqliteErrors(() => native.loadExtension(path)),
    serialize: () => (native.serialize === undefined ? imageByFile(native) : Buffer.from(native.serialize())),
    close() {
      if (native.isOpen) native.close();
    },
  };
}

/* Node 22 has neither `serialize` nor `deserialize`: images go through a file of a moment. */

function withFile<T>(use: (path: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-image-"));
  try {
    return use(join(folder, "image.db"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function imageByFile(native: NativeDatabase): Buffer {
  return withFile((path) => {
    native.prepare("VACUUM INTO ?").run(path);
    return readFileSync(path);
  });
}

/** The file is removed while it is open. So the database ends with the connection, as one in memory does. */
function openImage(
  module: NativeModule,
  image: Uint8Array,
  options: Readonly<Record<string, unknown>>,
): NativeDatabase {
  return withFile((path) => {
    writeFileSync(path, image);
    const native = new module.DatabaseSync(path, options);
    native.exec("PRAGMA journal_mode = MEMORY");
    return native;
  });
}

/** Node always opens with "create if missing"; the URL tells SQLite not to create. */
function existing(path: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set("mode", "rw");
  return url;
}

export const nodeSqlite: Driver = {
  name: "node:sqlite",
  missing() {
    const module = nativeModule();
    const isWhole = module?.backup !== undefined && module.StatementSync.prototype.setReturnArrays !== undefined;
    return isWhole ? undefined : `it takes Node ${OLDEST_NODE} or newer`;
  },
  open(file, { readonly = false, fileMustExist = false, timeout = TIMEOUT_MS }) {
    const module = nativeModule();
    if (module === undefined) throw new Error(`This Node (${process.version}) has no node:sqlite.`);
    const options = { readOnly: readonly, allowExtension: true, timeout };
    return withSqliteErrors(() => {
      if (typeof file === "string") {
        const path = fileMustExist && !readonly ? existing(file) : file;
        return connectionOf(new module.DatabaseSync(path, options), module);
      }
      const empty = new module.DatabaseSync(":memory:", options);
      if (empty.deserialize !== undefined) {
        empty.deserialize(file);
        return connectionOf(empty, module);
      }
      empty.close();
      return connectionOf(openImage(module, file, options), module);
    });
  },
};
