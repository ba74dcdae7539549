/**
 * SQLite, by whichever driver there is: better-sqlite3 where it has a build for the Node that runs, else Node's own
 * `node:sqlite`. The files are the same.
 */
import { betterSqlite3 } from "./better-sqlite3.ts";
import { nodeSqlite } from "./node-sqlite.ts";
import type { Connection, Driver, OpenOptions } from "./types.ts";

export { SqliteError } from "./error.ts";
export { rowMaker } from "./row-maker.ts";
export type { Connection, OpenOptions, RunResult, Statement, Transaction } from "./types.ts";

/** In the order in which they are taken. */
const DRIVERS = [betterSqlite3, nodeSqlite];

let chosen: Driver | undefined;

/** Of this process. For tests `WSFS_TEST_SQLITE` names the one to take. */
function driver(): Driver {
  chosen ??= choose(process.env.WSFS_TEST_SQLITE);
  return chosen;
}

function choose(only: string | undefined): Driver {
  const candidates = DRIVERS.filter(({ name }) => only === undefined || name === only);
  const reasons: string[] = [];
  for (const candidate of candidates) {
    const reason = candidate.missing();
    if (reason === undefined) return candidate;
    reasons.push(`${candidate.name}: ${reason}`);
  }
  if (candidates.length === 0)
    reasons.push(`WSFS_TEST_SQLITE is "${only}", expected ${DRIVERS.map(({ name }) => name).join(" or ")}`);
  throw new Error(`Node ${process.version} has no SQLite that can be used (${reasons.join("; ")}).`);
}

export const sqliteDriver = (): string => driver().name;

/**
 * `file`: a path, ":memory:", or what `serialize` gave. Throws an SqliteError where SQLite does not open it, and an Error
 * that names what is missing where there is no driver.
 */
export function openSqlite(file: string | Buffer, options: OpenOptions = {}): Connection {
  return driver().open(file, options);
}
