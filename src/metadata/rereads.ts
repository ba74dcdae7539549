/**
 * Nodes that must be read again by id, because the news of them do not fit together yet. They are rows, so that the
 * request is committed together with its cause: a crash in between must not lose it.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare, rememberAny } from "./database.ts";

export interface Reread {
  readonly id: number;
  readonly nodeId: string;
  /** Node id of the folder that last listed it. Null: not known. */
  readonly folder: string | null;
}

export function createRereads(database: Connection) {
  // A repeated request for a node gets another id, so that the end of a read under way does not remove it.
  const insert = prepare(
    database,
    `INSERT OR REPLACE INTO reread (node_id, due, missing_since, hidden_since, folder)
     VALUES (@nodeId, 0, (SELECT missing_since FROM reread WHERE node_id = @nodeId),
       (SELECT hidden_since FROM reread WHERE node_id = @nodeId),
       coalesce(@folder, (SELECT folder FROM reread WHERE node_id = @nodeId)))`,
  );
  const due = prepare<Reread>(
    database,
    "SELECT id, node_id AS nodeId, folder FROM reread WHERE due <= ? ORDER BY due, id LIMIT +?",
  );
  const missing = prepare(database, "UPDATE reread SET missing_since = @since WHERE node_id = @nodeId");
  const postpone = prepare(database, "UPDATE reread SET due = ? WHERE id = ?");
  const hidden = prepare<{ since: RowTime }>(
    database,
    "UPDATE reread SET hidden_since = coalesce(hidden_since, @now) WHERE node_id = @nodeId RETURNING hidden_since AS since",
  );
  const since = prepare<{ since: RowTime | null }>(
    database,
    "SELECT missing_since AS since FROM reread WHERE node_id = ?",
  );
  const found = prepare(database, "UPDATE reread SET missing_since = NULL WHERE node_id = ?");
  const remove = prepare(database, "DELETE FROM reread WHERE id = ?");
  const countKnown = prepare<{ count: number }>(
    database,
    "SELECT count(*) AS count FROM reread WHERE node_id IN (SELECT node_id FROM node)",
  );
  const count = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM reread");
  const byNodeId = prepare(database, "SELECT 1 FROM reread WHERE node_id = ?");
  const isAny = rememberAny(database, "reread");
  return {
    count: (): number => count.get()?.count ?? 0,
    /** Adds a node that is to be read at once. `folder`: node id of the folder that lists it. */
    add(nodeId: string, folder: string | null = null): void {
      insert.run({ nodeId, folder });
    },
    has: (nodeId: string): boolean => isAny() && byNodeId.get(nodeId) !== undefined,
    due: (now: RowTime, limit: number): Reread[] => (isAny() ? due.all(now, limit) : []),
    /** Removes the request, because the state is in the rows. A request that was repeated meanwhile stays. */
    done({ id }: Reread): void {
      remove.run(id);
    },
    /** Records that the node's id is found. */
    found(nodeId: string): void {
      if (isAny()) found.run(nodeId);
    },
    /** The time since which the node's id answers 404, in row time. Undefined: it was found, or not asked for yet. */
    missingSince: (nodeId: string): RowTime | undefined =>
      isAny() ? (since.get(nodeId)?.since ?? undefined) : undefined,
    /** Records that the node's id answers 404 since `since`. It is asked for again at `nextAt`. Both are row time. */
    missing({ id, nodeId }: Reread, since: RowTime, nextAt: RowTime): void {
      missing.run({ nodeId, since });
      postpone.run(nextAt, id);
    },
    /** Records that a folder above the node is not visible. Returns the time since which that holds, in row time. */
    hidden: ({ nodeId }: Reread, now: RowTime): RowTime => hidden.get({ nodeId, now })?.since ?? now,
    postpone({ id }: Reread, nextAt: RowTime): void {
      postpone.run(nextAt, id);
    },
    /** The number of these nodes that have a node row. */
    countKnown: (): number => countKnown.get()?.count ?? 0,
  };
}
