/**
 * Checks whether a database is as SQLite wrote it: its pages, their order and the constraints of the tables. SQLite
 * does not notice a changed byte within a value. This file does not know the consequences of damage.
 */
import { type Connection, openSqlite, SqliteError } from "../lib/sqlite/index.ts";

/** Errors of damage: an invalid page, or a file that is no database or too short. A full or failing disk has others. */
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
 * Turns the copy of a database into a single file, without a log beside it. Returns its damage in words. Undefined:
 * there is none. Throws an SqliteError when the disk is full or fails.
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

/** The damage in words. Throws any other error: a full or failing disk says nothing about the content. */
function whatIsDamaged(error: unknown): string {
  if (error instanceof SqliteError && isDamage(error)) return `${error.message} (${error.code})`;
  throw error;
}
