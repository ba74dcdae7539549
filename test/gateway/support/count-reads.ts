/** Counts how often the statements of a database are asked for rows, from now on. */
import type { Connection } from "../../../src/lib/sqlite/index.ts";

export interface Reads {
  /** Of statements whose text has this. */
  of(text: string): number;
}

export function countReads(database: Connection): Reads {
  const counts = new Map<string, number>();
  const prepare = database.prepare.bind(database);
  database.prepare = ((sql: string) => {
    const statement = prepare(sql);
    const all = statement.all.bind(statement);
    statement.all = (...values: unknown[]) => {
      counts.set(sql, (counts.get(sql) ?? 0) + 1);
      return all(...values);
    };
    return statement;
  }) as typeof database.prepare;
  return {
    of: (text) => [...counts].reduce((sum, [sql, count]) => sum + (sql.includes(text) ? count : 0), 0),
  };
}
