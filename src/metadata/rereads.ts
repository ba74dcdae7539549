/**
 * Nodes whose state is to be read again by id, because what was heard of them does not fit together yet. They are rows,
 * so that they are committed with what asks for the read: a crash in between must not lose it.
 */
import { type Connection, prepare, rememberAny } from "./database.ts";

export interface Reread {
  readonly id: number;
  readonly nodeId: string;
  /** Node id of the folder in which it was last said to be, if that was said. */
  readonly folder: string | null;
}

export function createRereads(database: Connection) {
  // A node that is asked for again gets another id: a read that is under way does not answer for it.
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
  const hidden = prepare<{ since: number }>(
    database,
    "UPDATE reread SET hidden_since = coalesce(hidden_since, @now) WHERE node_id = @nodeId RETURNING hidden_since AS since",
  );
  const since = prepare<{ since: number | null }>(
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
  const isAny = rememberAny(database, "reread");
  return {
    count: (): number => count.get()?.count ?? 0,
    /** To be read at once. `folder`: node id of the folder in which it is said to be. */
    add(nodeId: string, folder: string | null = null): void {
      insert.run({ nodeId, folder });
    },
    due: (now: number, limit: number): Reread[] => (isAny() ? due.all(now, limit) : []),
    /** What was read is in the rows. If it was asked for again meanwhile, it stays. */
    done({ id }: Reread): void {
      remove.run(id);
    },
    /** Its id answers. */
    found(nodeId: string): void {
      if (isAny()) found.run(nodeId);
    },
    /** Since when its id answers 404, in row time. Undefined: it answered, or was not asked yet. */
    missingSince: (nodeId: string): number | undefined =>
      isAny() ? (since.get(nodeId)?.since ?? undefined) : undefined,
    /** Its id answers 404. */
    missing({ id, nodeId }: Reread, since: number, nextAt: number): void {
      missing.run({ nodeId, since });
      postpone.run(nextAt, id);
    },
    /** A folder above it is not visible. Returns since when. */
    hidden: ({ nodeId }: Reread, now: number): number => hidden.get({ nodeId, now })?.since ?? now,
    postpone({ id }: Reread, nextAt: number): void {
      postpone.run(nextAt, id);
    },
    /** How many of the nodes have a row here. */
    countKnown: (): number => countKnown.get()?.count ?? 0,
  };
}
