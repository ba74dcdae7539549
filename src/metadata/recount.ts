/**
 * What the gateway counted is forgotten, what it told is kept: for when its past is another one than
 * it was, and revisions and positions of that mean nothing any more. Every node is to be read again.
 */
import { type Connection, prepare } from "./database.ts";

export function createRecount(database: Connection): () => void {
  const steps = [
    // Below every revision there is: whatever is heard next is news.
    "UPDATE node SET base_revision = 0, base_position = 0, seen = NULL, seen_at = NULL WHERE node_id IS NOT NULL",
    "UPDATE inode SET listed = 0 WHERE listed IS NOT NULL",
    "DELETE FROM tombstone",
    "DELETE FROM arrival",
    "INSERT OR REPLACE INTO reread (node_id, due) SELECT node_id, 0 FROM node WHERE node_id IS NOT NULL",
  ].map((sql) => prepare(database, sql));
  return () => {
    for (const step of steps) step.run();
  };
}
