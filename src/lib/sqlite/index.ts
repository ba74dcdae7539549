/**
 * SQLite, by the driver that is available: better-sqlite3 where it has a build for the running Node, otherwise Node's
 * own `node:sqlite`. The database files are the same.
 */
import { betterSqlite3 } from "./better-sqlite3.ts";
import { nodeSqlite } from "./node-sqlite.ts";
import type { Connection, Driver, OpenOptions } from "./types.ts";

export { SqliteError } from "./error.ts";
export { rowMaker } from "./row-maker.ts";
export type { Connection, Statement } from "./types.ts";

/** In order of preference. */
const DRIVERS = [betterSqlite3, nodeSqlite];

let chosen: Driver | undefined;

/** The driver of this process. In tests, `WSFS_TEST_SQLITE` names it. */
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
 * `file`: a path, ":memory:", or the bytes of `serialize`. Throws an SqliteError when SQLite cannot open it, and an
 * Error with the reasons when no driver can be used.
 */
export function openSqlite(file: string | Buffer, options: OpenOptions = {}): Connection {
  return driver().open(file, options);
}
