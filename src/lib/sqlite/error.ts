/** An error of SQLite, by either driver. `code` is the name of its result code, as "SQLITE_FULL". */
import Database from "better-sqlite3";

/** better-sqlite3's own class: plain JavaScript, which is there where its addon is not. */
export const { SqliteError } = Database;
export type SqliteError = InstanceType<typeof SqliteError>;
