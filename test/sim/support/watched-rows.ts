/** Rows that report each statement that is run on them, for tests of how much work something is. */
import type { Connection } from "../../../src/metadata/database.ts";

/** `ran`: once a statement has run, with how many rows it answered. */
export function watchedRows(database: Connection, ran: (sql: string, rows: number) => void): Connection {
  const bound = (target: object, name: string | symbol) => {
    const value: unknown = Reflect.get(target, name);
    return typeof value === "function" ? value.bind(target) : value;
  };
  const statementOf = (sql: string, prepared: ReturnType<Connection["prepare"]>): typeof prepared =>
    new Proxy(prepared, {
      get(statement, method) {
        const value: unknown = bound(statement, method);
        if (typeof value !== "function") return value;
        if (method === "raw" || method === "pluck") return (toggle: boolean) => statementOf(sql, value(toggle));
        if (method !== "get" && method !== "all" && method !== "run") return value;
        return (...parameters: unknown[]) => {
          const result: unknown = value(...parameters);
          ran(sql, Array.isArray(result) ? result.length : method === "get" && result !== undefined ? 1 : 0);
          return result;
        };
      },
    });
  return new Proxy(database, {
    get: (target, name) =>
      name === "prepare" ? (sql: string) => statementOf(sql, target.prepare(sql)) : bound(target, name),
  });
}
