/**
 * Databases in memory for what starts and kills processes by the hundred: a connection with all that
 * was ever prepared on it is lent out filled with the rows to begin with, and lent again when it is
 * given back. Who still has it then cannot reach the rows of the next. Knows nothing of what is in
 * the tables.
 */
import type { Connection, Statement } from "../../../src/lib/sqlite/index.ts";

/** "exact": as an array of values, none of them rounded. */
type Mode = "rows" | "pluck" | "raw" | "exact";

/** All rows of a moment. Nothing done later changes it. */
export type Rows = readonly (readonly [table: string, rows: readonly unknown[][]])[];

export interface KeptRows {
  /** A connection with these rows and no others, or as it is when just opened. Closed, it is given back. */
  take(rows?: Rows): Connection;
  /** Of one that was taken: what is committed, with nothing under way. */
  rowsOf(connection: Connection): Rows;
}

export function createKeptRows(open: () => Connection): KeptRows {
  const free: Kept[] = [];
  const lentOut = new WeakMap<Connection, Kept>();
  return {
    take(rows) {
      const kept = free.pop() ?? keep(open());
      fill(kept, rows ?? kept.first);
      const lent = lend(kept, () => {
        dropTriggers(kept);
        free.push(kept);
      });
      lentOut.set(lent, kept);
      return lent;
    },
    rowsOf(lent) {
      const kept = lentOut.get(lent);
      if (kept === undefined || lent.inTransaction) throw new Error("expected a taken connection, nothing under way");
      return rowsIn(kept);
    },
  };
}

/** Those that who had it has made for himself. */
function dropTriggers({ connection, prepare }: Kept): void {
  const names = prepare("SELECT name FROM sqlite_temp_master WHERE type = 'trigger'", "pluck").all();
  for (const name of names) connection.exec(`DROP TRIGGER temp."${name}"`);
}

interface Kept {
  readonly connection: Connection;
  readonly tables: readonly string[];
  /** What it was opened with. */
  readonly first: Rows;
  prepare(sql: string, mode: Mode): Statement;
}

function keep(connection: Connection): Kept {
  const known: Record<Mode, Map<string, Statement>> = {
    rows: new Map(),
    pluck: new Map(),
    raw: new Map(),
    exact: new Map(),
  };
  const prepare = (sql: string, mode: Mode) => {
    let statement = known[mode].get(sql);
    if (statement === undefined) {
      statement = connection.prepare(sql);
      if (mode === "pluck") statement.pluck();
      else if (mode !== "rows") statement.raw();
      if (mode === "exact") statement.safeIntegers();
      known[mode].set(sql, statement);
    }
    return statement;
  };
  const tables = tablesOf(connection);
  return { connection, tables, prepare, first: rowsIn({ tables, prepare }) };
}

function rowsIn({ tables, prepare }: Pick<Kept, "tables" | "prepare">): Rows {
  return tables.map((table) => [table, prepare(`SELECT * FROM "${table}"`, "exact").all() as unknown[][]]);
}

/** Those that others refer to come first; what counts the rows of the others comes last. */
function tablesOf(connection: Connection): string[] {
  const tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name = 'sqlite_sequence', rowid";
  const referred = connection.prepare('SELECT "table" FROM pragma_foreign_key_list(?)').pluck();
  const ordered = new Set<string>();
  const add = (table: string, above: readonly string[]) => {
    if (above.includes(table)) throw new Error(`tables refer to each other: ${above.join(", ")}`);
    for (const other of referred.all(table) as string[]) if (other !== table) add(other, [...above, table]);
    ordered.add(table);
  };
  for (const table of connection.prepare(tables).pluck().all() as string[]) add(table, []);
  return [...ordered];
}

/** References hold throughout: were they switched off for it, all that is prepared would have to be prepared again. */
function fill({ connection, tables, prepare }: Kept, rows: Rows): void {
  connection.exec("BEGIN");
  const given = new Map(rows);
  for (const table of tables.toReversed()) prepare(`DELETE FROM "${table}"`, "rows").run();
  // What triggers have put there meanwhile goes before its own rows come.
  for (const table of tables) {
    if (given.has(table)) prepare(`DELETE FROM "${table}"`, "rows").run();
    for (const row of given.get(table) ?? []) {
      prepare(`INSERT INTO "${table}" VALUES (${row.map(() => "?").join()})`, "rows").run(...row);
    }
  }
  connection.exec("COMMIT");
}

function lend(kept: Kept, giveBack: () => void): Connection {
  let isOver = false;
  const use = <T>(work: () => T): T => {
    if (isOver) throw new TypeError("The database connection is not open");
    return work();
  };
  const statement = (sql: string, mode: Mode) => {
    const own = kept.prepare(sql, mode);
    return {
      source: sql,
      reader: own.reader,
      columns: () => own.columns(),
      get: (...parameters: unknown[]) => use(() => own.get(...parameters)),
      all: (...parameters: unknown[]) => use(() => own.all(...parameters)),
      run: (...parameters: unknown[]) => use(() => own.run(...parameters)),
      iterate: (...parameters: unknown[]) => use(() => own.iterate(...parameters)),
      pluck: () => statement(sql, "pluck"),
      raw: () => statement(sql, "raw"),
    };
  };
  const lent = Object.create(kept.connection) as Connection;
  return Object.assign(lent, {
    prepare: ((sql: string) => use(() => statement(sql, "rows"))) as unknown as Connection["prepare"],
    exec: (sql: string) => use(() => kept.connection.exec(sql)),
    close() {
      if (isOver) return lent;
      if (lent.inTransaction) kept.connection.exec("ROLLBACK");
      isOver = true;
      giveBack();
      return lent;
    },
  });
}
