/** The errors of SQLite with both drivers. `code` is the name of the result code, such as "SQLITE_FULL". */
import Database from "better-sqlite3";

/** better-sqlite3's own class. It is plain JavaScript, which also exists where the addon does not. */
export const { SqliteError } = Database;
export type SqliteError = InstanceType<typeof SqliteError>;
