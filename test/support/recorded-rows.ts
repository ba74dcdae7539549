/** A database connection that tells of every statement that runs through it. */
import type { Connection } from "../../src/metadata/database.ts";

/** `rows`: returned or changed. */
export type OnStatement = (sql: string, rows: number, parameters: readonly unknown[]) => void;

export function recordedRows(database: Connection, onStatement: OnStatement): Connection {
  return new Proxy(database, {
    get(target, name) {
      if (name !== "prepare") {
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      }
      return (sql: string) => {
        const statement = target.prepare(sql);
        const tell = <T>(rows: number, parameters: readonly unknown[], answer: T): T => {
          onStatement(sql, rows, parameters);
          return answer;
        };
        const recorded = {
          reader: statement.reader,
          columns: () => statement.columns(),
          raw(toggle: boolean) {
            statement.raw(toggle);
            return recorded;
          },
          pluck(toggle: boolean) {
            statement.pluck(toggle);
            return recorded;
          },
          get(...parameters: unknown[]) {
            const row = statement.get(...parameters);
            return tell(row === undefined ? 0 : 1, parameters, row);
          },
          all(...parameters: unknown[]) {
            const rows = statement.all(...parameters);
            return tell(rows.length, parameters, rows);
          },
          run(...parameters: unknown[]) {
            const result = statement.run(...parameters);
            return tell(result.changes, parameters, result);
          },
        };
        return recorded;
      };
    },
  });
}

/** The steps by which a statement looks through a table or an index, instead of finding what it wants. */
export function scansOf(database: Connection, sql: string, parameters: readonly unknown[]): string[] {
  if (!/^\s*(SELECT|UPDATE|DELETE|INSERT)/.test(sql)) return [];
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
  return steps.flatMap(({ detail }) => (detail.startsWith("SCAN") ? `${detail}: ${sql}` : []));
}
