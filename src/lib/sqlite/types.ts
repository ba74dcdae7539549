/** The interface of both drivers of SQLite: the part of better-sqlite3's interface that is used. */

export interface RunResult {
  readonly changes: number;
  readonly lastInsertRowid: number | bigint;
}

/** `Row`: the type of a row, after `pluck` or `raw`. */
export interface Statement<Parameters extends readonly unknown[] = unknown[], Row = unknown> {
  readonly source: string;
  /** True if the statement returns rows. `run` is only for statements that return none. */
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
  /** From now on integers are bigints, so that none is rounded. */
  safeIntegers(toggle?: boolean): this;
  columns(): readonly { readonly name: string }[];
}

/** Runs the work in a transaction, or in a savepoint of the transaction under way. Rolled back when the work throws. */
export interface Transaction<Parameters extends readonly unknown[], Result> {
  (...parameters: Parameters): Result;
  /** Takes the lock for writing at the beginning, so that no other connection writes between reads and writes. */
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
  /** The rows of `PRAGMA sql`. `simple`: the first value of the first row. */
  pragma(sql: string, options?: { readonly simple?: boolean }): unknown;
  transaction<Parameters extends unknown[], Result>(
    work: (...parameters: Parameters) => Result,
  ): Transaction<Parameters, Result>;
  /** Adds a function that SQL can call. The statement throws the function's errors. */
  function(name: string, work: (...values: unknown[]) => unknown): unknown;
  /** Copies the database to a file, page by page. `progress` returns the number of pages of the next step. */
  backup(path: string, options: { readonly progress: () => number }): Promise<unknown>;
  /** Loads an extension, for this connection, or for the whole process if the extension says so. */
  loadExtension(path: string): unknown;
  /** All bytes of the database, as a file would have them. */
  serialize(): Buffer;
  close(): unknown;
}

export interface OpenOptions {
  readonly readonly?: boolean;
  /** Otherwise a missing database is created. */
  readonly fileMustExist?: boolean;
  /** The longest wait for a locked database, milliseconds. Default 5000. */
  readonly timeout?: number;
}

export interface Driver {
  readonly name: string;
  /** The reason why the driver cannot be used with this Node. Undefined: it can be used. */
  missing(): string | undefined;
  /** `file`: its path, ":memory:", or the bytes of `serialize`, for a database in memory. */
  open(file: string | Buffer, options: OpenOptions): Connection;
}
