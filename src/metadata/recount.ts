/**
 * Forgets revisions and positions after a rollback of the gateway, whose counters mean nothing any more. Everything
 * else that the gateway told is kept. Every node must be read again.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare } from "./database.ts";

/** `now` (row time): rows with news, and dirty rows, become due then. */
export function createRecount(database: Connection): (now: RowTime) => void {
  const due = prepare(
    database,
    `UPDATE node SET due = ? WHERE node_id IS NOT NULL AND due IS NULL AND parked IS NULL
       AND (seen IS NOT NULL OR dirty_since IS NOT NULL)`,
  );
  const steps = [
    // 0 is below every revision, so the next state of each node is news.
    "UPDATE node SET base_revision = 0, base_position = 0, seen = NULL, seen_at = NULL WHERE node_id IS NOT NULL",
    "UPDATE inode SET listed = 0 WHERE listed IS NOT NULL",
    "DELETE FROM tombstone",
    "DELETE FROM arrival",
    // The time since which an id answers 404 stays: it does not depend on the gateway's history.
    `INSERT OR REPLACE INTO reread (node_id, due, missing_since)
     SELECT node.node_id, 0, reread.missing_since FROM node LEFT JOIN reread ON reread.node_id = node.node_id
     WHERE node.node_id IS NOT NULL`,
  ].map((sql) => prepare(database, sql));
  return (now) => {
    due.run(now);
    for (const step of steps) step.run();
  };
}
