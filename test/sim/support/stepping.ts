/**
 * Files and rows that report each effect that outlives the process, right after it. What a successor finds depends only
 * on how far this sequence came: a kill at each of its places is a kill at every place.
 */
import type { Files, OpenFile } from "../../../src/lib/files.ts";
import type { Connection } from "../../../src/metadata/database.ts";

export type OnStep = (label: string) => void;

const CHANGES_OF_FILES = ["rename", "remove", "makeFolder", "clone"] as const;
const CHANGES_OF_A_FILE = ["write", "truncate", "setTimes", "allocate"] as const;

export function steppingFiles(files: Files, step: OnStep): Files {
  return {
    ...telling(files, CHANGES_OF_FILES, step),
    async open(path, mode) {
      const file = await files.open(path, mode);
      if (mode === "w+" || mode === "wx+") step("file: open");
      return steppingFile(file, step);
    },
  };
}

function steppingFile(file: OpenFile, step: OnStep): OpenFile {
  return telling(file, CHANGES_OF_A_FILE, step);
}

/** The same, its calls of these names telling when they have succeeded. */
function telling<T extends object>(target: T, names: readonly (keyof T & string)[], step: OnStep): T {
  const told = Object.entries(target).map(([name, call]) => {
    if (!names.some((one) => one === name)) return [name, call];
    const change = call as (...args: unknown[]) => Promise<unknown>;
    return [
      name,
      async (...args: unknown[]) => {
        const result = await change(...args);
        step(`file: ${name}`);
        return result;
      },
    ];
  });
  return Object.fromEntries(told) as T;
}

/** Statements outside of a transaction are each one of their own; inside, the commit is what counts. */
export function steppingRows(database: Connection, step: OnStep): Connection {
  return new Proxy(database, {
    get(target, name) {
      if (name === "prepare") {
        return (sql: string) => {
          const statement = target.prepare(sql);
          if (/^\s*(SELECT|WITH|PRAGMA|BEGIN|ROLLBACK)\b/i.test(sql)) return statement;
          const run = statement.run.bind(statement);
          statement.run = (...args: unknown[]) => {
            if (sql === "COMMIT") step("rows: about to commit");
            const result = run(...args);
            if (!target.inTransaction) step("rows: committed");
            return result;
          };
          return statement;
        };
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
