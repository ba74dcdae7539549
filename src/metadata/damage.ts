/**
 * Whether a database is what SQLite wrote, as far as SQLite can tell: pages, their order and the
 * constraints of the tables. A changed byte within a value is seen by nobody. Knows nothing of what
 * is done about it.
 */
import { type Connection, openSqlite, SqliteError } from "../lib/sqlite/index.ts";

/** Not what a full or failing disk says: a page that is not one, a file that is none or too short. */
const DAMAGE = /^SQLITE_(?:CORRUPT|NOTADB|IOERR_SHORT_READ|IOERR_CORRUPTFS|IOERR_DATA)/;

export function isDamage(error: unknown): boolean {
  return error instanceof SqliteError && DAMAGE.test(error.code);
}

/** The first thing that is wrong, in SQLite's words; undefined: nothing is. Reads all of it. */
export function damageIn(database: Connection): string | undefined {
  try {
    const found = String(database.pragma("quick_check(1)", { simple: true }));
    return found === "ok" ? undefined : found.replaceAll(/\s+/g, " ");
  } catch (error) {
    return whatIsDamaged(error);
  }
}

/** Makes a copy of a database a file of its own, without a log beside it; what is wrong with it, if anything is. */
export function finishCopy(path: string): string | undefined {
  try {
    const copy = openSqlite(path, { fileMustExist: true });
    try {
      copy.pragma("journal_mode = DELETE");
      return damageIn(copy);
    } finally {
      copy.close();
    }
  } catch (error) {
    return whatIsDamaged(error);
  }
}

/** A disk that is full, or fails for now, says nothing of what is on it. */
function whatIsDamaged(error: unknown): string {
  if (error instanceof SqliteError && isDamage(error)) return `${error.message} (${error.code})`;
  throw error;
}
