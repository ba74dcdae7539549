/**
 * Vacated states, which writes of ours moved nodes away from: they recognise echoes of a gateway that counts no
 * changes.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare } from "./database.ts";

export function createVacatedStates(database: Connection) {
  const insert = prepare(
    database,
    "INSERT OR REPLACE INTO vacated (node_id, state, at, heard) VALUES (@nodeId, @state, @at, 0)",
  );
  const hear = prepare(database, "UPDATE vacated SET heard = 1 WHERE node_id = ? AND state = ? AND at > ?");
  const remove = prepare(database, "DELETE FROM vacated WHERE node_id = ? AND state = ?");
  const heard = prepare<{ nodeId: string }>(
    database,
    "SELECT DISTINCT node_id AS nodeId FROM vacated WHERE at <= ? AND heard = 1",
  );
  const forget = prepare(database, "DELETE FROM vacated WHERE at <= ?");
  return {
    add(nodeId: string, state: string, at: RowTime): void {
      insert.run({ nodeId, state, at });
    },
    /** Removes the state: a change that is no echo brought the node back to it. */
    remove(nodeId: string, state: string): void {
      remove.run(nodeId, state);
    },
    /** True if the node left this state after `since` (row time). If so, records that the node was seen in it again. */
    isHeard: (nodeId: string, state: string, since: RowTime): boolean => hear.run(nodeId, state, since).changes > 0,
    /** Forgets states that were left up to `time`. Returns the nodes that were seen in one of them afterwards. */
    forgetUpTo(time: RowTime): string[] {
      const nodes = heard.all(time).map((row) => row.nodeId);
      forget.run(time);
      return nodes;
    },
  };
}
