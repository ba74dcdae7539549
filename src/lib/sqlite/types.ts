/** The one interface of SQLite: what both drivers do alike. Its shape is better-sqlite3's, as far as it is used. */

export interface RunResult {
  readonly changes: number;
  readonly lastInsertRowid: number | bigint;
}

/** `Row`: what one row gives, by what `pluck` and `raw` have made of it. */
export interface Statement<Parameters extends readonly unknown[] = unknown[], Row = unknown> {
  readonly source: string;
  /** It gives rows: `run` is for the others alone. */
  readonly reader: boolean;
  /** Undefined: there is no row. */
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
  run(...parameters: Parameters): RunResult;
  iterate(...parameters: Parameters): IterableIterator<Row>;
  /** From now on a row is the value of its first column. */
  pluck(toggle?: boolean): this;
  /** From now on a row is an array of its values. */
  raw(toggle?: boolean): this;
  /** From now on integers are bigints: none is rounded. */
  safeIntegers(toggle?: boolean): this;
  columns(): readonly { readonly name: string }[];
}

/** Runs the work in a transaction, or within the one that is under way in a savepoint; undone when it throws. */
export interface Transaction<Parameters extends readonly unknown[], Result> {
  (...parameters: Parameters): Result;
  /** The lock for writing is taken at once: nobody else writes between what is read and what is written. */
  immediate(...parameters: Parameters): Result;
}

export interface Connection {
  readonly inTransaction: boolean;
  readonly open: boolean;
  prepare<Parameters extends unknown[] | object = unknown[], Row = unknown>(
    sql: string,
  ): Parameters extends unknown[] ? Statement<Parameters, Row> : Statement<[Parameters], Row>;
  /** Runs all statements of the text. */
  exec(sql: string): unknown;
  /** The rows of `PRAGMA sql`; `simple`: the first value of the first one. */
  pragma(sql: string, options?: { readonly simple?: boolean }): unknown;
  transaction<Parameters extends unknown[], Result>(
    work: (...parameters: Parameters) => Result,
  ): Transaction<Parameters, Result>;
  /** A function for SQL to call; what it throws is thrown by the statement. */
  function(name: string, work: (...values: unknown[]) => unknown): unknown;
  /** Copies it to a file, page by page: `progress` answers how many come in the next step. */
  backup(path: string, options: { readonly progress: () => number }): Promise<unknown>;
  /** For this connection, or where the extension says so for the whole process. */
  loadExtension(path: string): unknown;
  /** All of its bytes, as a file would have them. */
  serialize(): Buffer;
  close(): unknown;
}

export interface OpenOptions {
  readonly readonly?: boolean;
  /** Without it an empty database is made where there is none. */
  readonly fileMustExist?: boolean;
  /** Milliseconds for which a locked database is waited for. Default 5000. */
  readonly timeout?: number;
}

export interface Driver {
  readonly name: string;
  /** Why it cannot be used with this Node; undefined: it can. */
  missing(): string | undefined;
  /** `file`: its path, ":memory:", or what `serialize` gave, for a database in memory. */
  open(file: string | Buffer, options: OpenOptions): Connection;
}
