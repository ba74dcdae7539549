/** Counts the unsent changes of a mount that is not running. It only reads, so a daemon may start at the same time. */
import { type Connection, openSqlite, SqliteError } from "../lib/sqlite/index.ts";
import { PENDING_BYTES } from "./nodes.ts";

export interface Unsent {
  readonly dirty: number;
  readonly parked: number;
  readonly bytesPending: number;
}

const UNSENT = `SELECT count(*) AS dirty, count(node.parked) AS parked, coalesce(sum(${PENDING_BYTES}), 0) AS bytesPending
  FROM node LEFT JOIN entry ON entry.id = node.entry LEFT JOIN inode ON inode.id = entry.inode
  WHERE node.dirty_since IS NOT NULL`;

/**
 * Undefined: the rows cannot be read, because a daemon has the database, or the database is of another release, damaged
 * or missing.
 */
export function readUnsent(path: string): Unsent | undefined {
  let database: Connection | undefined;
  try {
    database = openSqlite(path, { readonly: true, fileMustExist: true, timeout: 0 });
    return database.prepare<[], Unsent>(UNSENT).get();
  } catch (error) {
    if (error instanceof SqliteError) return undefined;
    throw error;
  } finally {
    database?.close();
  }
}
