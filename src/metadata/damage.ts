/**
 * Checks whether a database is as SQLite wrote it, as far as SQLite can tell: pages, their order and the constraints of
 * the tables. A changed byte within a value is not noticed. This file does not know what is done about damage.
 */
import { type Connection, openSqlite, SqliteError } from "../lib/sqlite/index.ts";

/** Damage, unlike the errors of a full or failing disk: an invalid page, or a file that is no database or too short. */
const DAMAGE = /^SQLITE_(?:CORRUPT|NOTADB|IOERR_SHORT_READ|IOERR_CORRUPTFS|IOERR_DATA)/;

export function isDamage(error: unknown): boolean {
  return error instanceof SqliteError && DAMAGE.test(error.code);
}

/** Returns the first fault, in SQLite's words. Undefined: there is none. Reads the whole database. */
export function damageIn(database: Connection): string | undefined {
  try {
    const found = String(database.pragma("quick_check(1)", { simple: true }));
    return found === "ok" ? undefined : found.replaceAll(/\s+/g, " ");
  } catch (error) {
    return whatIsDamaged(error);
  }
}

/**
 * Makes a copy of a database a file of its own, without a log beside it. Returns its damage in words. Undefined: there
 * is none. Throws when the disk is full or fails.
 */
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

/** A full disk, or one that fails for now, says nothing about the content. */
function whatIsDamaged(error: unknown): string {
  if (error instanceof SqliteError && isDamage(error)) return `${error.message} (${error.code})`;
  throw error;
}
