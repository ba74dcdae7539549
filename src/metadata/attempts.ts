/** Attempts (requests that are rows before they are sent), snapshots (their contents) and tombstones. */
import { earliestOf, type RowTime } from "../lib/clocks.ts";
import { BEFORE_FIRST, type Connection, prepare, prepareColumn, remember } from "./database.ts";
import {
  type AttemptId,
  addedId,
  type InodeId,
  type KernelNodeId,
  type NodeRowId,
  type SnapshotId,
  snapshotId,
} from "./ids.ts";
import { decodePriority, encodePriority, PRIORITIES, type Priority, type PriorityColumn } from "./priority.ts";

export interface Attempt<Request> {
  readonly id: AttemptId;
  readonly node: NodeRowId;
  /** "abandoned": given up, for example for a newer snapshot. Its key still identifies a late effect as ours. */
  readonly state: "open" | "abandoned";
  /** Idempotency key. */
  readonly key: string;
  readonly request: Request;
  /** The snapshot that it uploads. */
  readonly snapshot: SnapshotId | null;
  /** The number of failures. */
  readonly tries: number;
  /** The time when it may be sent again, in row time. Of an abandoned attempt: the time when it was abandoned. */
  readonly nextAt: RowTime;
  readonly lastError: string | null;
  /** In row time. */
  readonly createdAt: RowTime;
  /** As in its node row. */
  readonly priority: Priority;
}

interface Row extends Omit<Attempt<unknown>, "request" | "priority"> {
  readonly request: string;
  readonly priority: PriorityColumn;
}

/** The parts of requests that have columns of their own, for queries. */
interface Sought {
  readonly parent?: string;
  readonly name?: string;
  readonly copyOf?: string;
  readonly with?: string;
}

const COLUMNS = `id, node, state, key, request, generation AS snapshot, tries, next_at AS nextAt,
  last_error AS lastError, created_at AS createdAt, bulk AS priority`;

/** `parse` checks the JSON of a stored request. It throws when the JSON is no request. */
export function createAttempts<Request>(database: Connection, parse: (value: unknown) => Request) {
  const byId = prepare<Row>(database, `SELECT ${COLUMNS} FROM attempt WHERE id = ?`);
  const openOfNode = prepare<Row>(database, `SELECT ${COLUMNS} FROM attempt WHERE node = ? AND state = 'open'`);
  const byKey = prepare<{ id: AttemptId }>(database, "SELECT id FROM attempt WHERE key = ?");
  const all = prepare<Row>(database, `SELECT ${COLUMNS} FROM attempt WHERE state = 'open' ORDER BY id`);
  const nodesWanting = prepare<{ node: NodeRowId }>(
    database,
    "SELECT node FROM attempt WHERE state = 'open' AND parent = ?",
  );
  const nodesCopying = prepare<{ node: NodeRowId }>(
    database,
    "SELECT node FROM attempt WHERE state = 'open' AND copy_of = ?",
  );
  const concerning = prepare<{ one: number }>(
    database,
    `SELECT 1 AS one FROM attempt WHERE node = @row
     UNION ALL SELECT 1 FROM attempt WHERE state = 'open' AND parent = @nodeId
     UNION ALL SELECT 1 FROM attempt WHERE state = 'abandoned' AND parent = @nodeId
     UNION ALL SELECT 1 FROM attempt WHERE state = 'open' AND copy_of = @nodeId
     UNION ALL SELECT 1 FROM attempt WHERE state = 'open' AND partner = @nodeId LIMIT 1`,
  );
  const due = prepareColumn<NodeRowId>(
    database,
    "SELECT node FROM attempt WHERE state = 'open' AND bulk = ? AND next_at <= ? ORDER BY next_at, id LIMIT +?",
  );
  const nextOfPriority = prepare<{ at: RowTime }>(
    database,
    "SELECT next_at AS at FROM attempt WHERE state = 'open' AND bulk = ? AND next_at > ? ORDER BY next_at LIMIT 1",
  );
  const openCount = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM attempt WHERE state = 'open'");
  const filling = prepare<{ one: number }>(
    database,
    "SELECT 1 AS one FROM attempt WHERE state = 'open' AND node IS NOT ? AND parent = ? AND name = ? LIMIT 1",
  );
  const exchanging = prepare<Row>(
    database,
    `SELECT ${COLUMNS} FROM attempt INDEXED BY attempt_partner
     WHERE state = 'open' AND partner = @nodeId AND parent = @parent AND name = @name LIMIT 1`,
  );
  const insert = prepare(
    database,
    `INSERT INTO attempt (node, state, key, request, generation, tries, next_at, last_error, created_at, bulk,
       parent, name, copy_of, partner)
     VALUES (@node, 'open', @key, @request, @snapshot, 0, @nextAt, NULL, @createdAt, @bulk,
       @parent, @name, @copyOf, @partner)`,
    [],
  );
  const failed = prepare(database, "UPDATE attempt SET tries = tries + 1, next_at = ?, last_error = ? WHERE id = ?");
  const expedite = prepare(
    database,
    `UPDATE attempt SET next_at = @at WHERE id IN (SELECT id FROM attempt INDEXED BY attempt_due
       WHERE state = 'open' AND bulk = @bulk AND next_at > @at ORDER BY next_at LIMIT +@limit)`,
  );
  const expediteAttempt = prepare(
    database,
    "UPDATE attempt SET next_at = min(next_at, ?) WHERE state = 'open' AND node = ?",
  );
  const newest = prepare<{ seq: number }>(database, "SELECT seq FROM sqlite_sequence WHERE name = 'attempt'");
  const abandon = prepare(
    database,
    "UPDATE attempt SET state = 'abandoned', generation = NULL, next_at = ? WHERE id = ?",
  );
  const remove = prepare(database, "DELETE FROM attempt WHERE id = ?", []);
  const removeOf = prepare(database, "DELETE FROM attempt WHERE node = ?");
  const abandoned = prepare<{ one: number }>(
    database,
    `SELECT 1 AS one FROM attempt WHERE node = ? AND state = 'abandoned'
     AND json_extract(request, '$.nodeId') IS NULL LIMIT 1`,
  );
  const abandonedOf = prepare<Row>(
    database,
    `SELECT ${COLUMNS} FROM attempt WHERE node = ? AND state = 'abandoned' ORDER BY id DESC`,
  );
  const abandonedAt = prepare<Row>(
    database,
    `SELECT ${COLUMNS} FROM attempt WHERE state = 'abandoned' AND parent = ? AND name = ? ORDER BY id DESC`,
  );
  const removeOld = prepare(database, "DELETE FROM attempt WHERE state = 'abandoned' AND next_at < ?");
  const sending = prepare<Row>(database, `SELECT ${COLUMNS} FROM attempt WHERE generation = ?`);

  /**
   * Attempts up to this id are older than this start. It is unknown which of them were sent, so each counts as sent
   * once.
   */
  const made = newest.get()?.seq ?? 0;
  const decodeRow = (row: Row): Attempt<Request> => {
    const tries = row.id <= made && row.state === "open" ? Math.max(1, row.tries) : row.tries;
    return { ...row, tries, priority: decodePriority(row.priority), request: parse(JSON.parse(row.request)) };
  };
  const decode = (row: Row | undefined) => (row === undefined ? undefined : decodeRow(row));
  const get = remember(database, ["attempt"], (id: AttemptId) => decode(byId.get(id)));
  const openOf = remember(database, ["attempt"], (node: NodeRowId) => decode(openOfNode.get(node)));
  const idOfKey = remember(database, ["attempt"], (key: string) => byKey.get(key)?.id);
  const ofSnapshot = remember(database, ["attempt"], (snapshot: SnapshotId): readonly Attempt<Request>[] =>
    sending.all(snapshot).map(decodeRow),
  );

  const nextAt = (now: RowTime): RowTime | undefined =>
    earliestOf(PRIORITIES.map((priority) => nextOfPriority.get(encodePriority(priority), now)?.at));

  return {
    openOf: (node: NodeRowId) => openOf(node),
    ofKey(key: string): Attempt<Request> | undefined {
      const id = idOfKey(key);
      return id === undefined ? undefined : get(id);
    },
    /** The attempts that send the snapshot. There are several when several names of an inode are sent at once. */
    ofSnapshot: (snapshot: SnapshotId): readonly Attempt<Request>[] => ofSnapshot(snapshot),
    open: (): Attempt<Request>[] => all.all().map(decodeRow),
    /** Node rows with an open attempt that puts them into this folder. */
    nodesWanting: (parent: string): NodeRowId[] => nodesWanting.all(parent).map((row) => row.node),
    /** Node rows with an open attempt that takes its content from a version of this node. */
    nodesCopying: (nodeId: string): NodeRowId[] => nodesCopying.all(nodeId).map((row) => row.node),
    /** Node rows of one priority class whose attempts are due, the longest due first. */
    due: (priority: Priority, now: RowTime, limit: number): NodeRowId[] => due(encodePriority(priority), now, limit),
    nextDue: (): RowTime | undefined => nextAt(BEFORE_FIRST),
    /** The first time after `now` at which an attempt may be sent again, in row time. */
    nextAt,
    /** True if another node may be at this place already, by an open attempt. `node`: the row that is not counted. */
    isPlaceWanted: (node: NodeRowId | undefined, parent: string, name: string): boolean =>
      filling.get(node ?? null, parent, name) !== undefined,
    /** The open attempt that exchanges another node with the node `nodeId`, for the place where that node is. */
    exchanging: (nodeId: string, parent: string, name: string): Attempt<Request> | undefined =>
      decode(exchanging.get({ nodeId, parent, name })),
    /**
     * True if a request, also one that was given up, is about the node or wants a place in it, or if an open one takes
     * its content or exchanges with it.
     */
    isAnyConcerning: (row: NodeRowId, nodeId: string): boolean => concerning.get({ row, nodeId }) !== undefined,
    countOpen: (): number => openCount.get()?.count ?? 0,
    create(attempt: {
      node: NodeRowId;
      key: string;
      request: Request;
      snapshot: SnapshotId | null;
      nextAt: RowTime;
      createdAt: RowTime;
      priority?: Priority;
    }): Attempt<Request> {
      const { node, key, snapshot, nextAt, createdAt, priority = "small" } = attempt;
      const text = JSON.stringify(attempt.request);
      // The remembered request must be the one that would be read back: JSON leaves out undefined fields.
      const request = JSON.parse(text) as Request;
      const { parent = null, name = null, copyOf = null, with: exchangePartner = null } = request as Sought;
      const columns = { parent, name, copyOf, partner: exchangePartner };
      const bulk = encodePriority(priority);
      const row = { node, key, snapshot, nextAt, createdAt, bulk, request: text, ...columns };
      const id = addedId<AttemptId>(insert.run(row));
      const rest = { state: "open", tries: 0, lastError: null } as const;
      const created = { id, node, key, request, snapshot, nextAt, createdAt, priority, ...rest };
      get.tell(id, created);
      idOfKey.tell(key, id);
      openOf.tell(node, created);
      if (snapshot !== null) ofSnapshot.drop(snapshot);
      return created;
    },
    failed(id: AttemptId, nextAt: RowTime, error: string): void {
      failed.run(nextAt, error, id);
    },
    /**
     * Makes up to `limit` attempts due at `at` (row time) that are due later, in each priority class the earliest
     * first. False: there are no more.
     */
    expedite(at: RowTime, limit: number): boolean {
      let left = limit;
      for (const priority of PRIORITIES) {
        if (left > 0) left -= expedite.run({ at, bulk: encodePriority(priority), limit: left }).changes;
      }
      return left === 0;
    },
    /** Makes the open attempt of this node row due at `at` (row time), unless it is due earlier. */
    expediteAttemptsOf(node: NodeRowId, at: RowTime): void {
      expediteAttempt.run(at, node);
    },
    /** Abandons the attempt, which keeps `now` (row time) as its `nextAt`. */
    abandon(id: AttemptId, now: RowTime): void {
      abandon.run(now, id);
    },
    remove(id: AttemptId): void {
      const current = get(id);
      remove.run(id);
      get.tell(id, undefined);
      if (current === undefined) return;
      idOfKey.tell(current.key, undefined);
      if (current.state === "open") openOf.tell(current.node, undefined);
      if (current.snapshot !== null) ofSnapshot.drop(current.snapshot);
    },
    removeAllOf(node: NodeRowId): void {
      removeOf.run(node);
    },
    /** True if an abandoned attempt may still create a node for this row. */
    hasAbandonedCreation: (node: NodeRowId): boolean => abandoned.get(node) !== undefined,
    /** The abandoned attempts of a node row, the last one first. */
    abandonedOf: (node: NodeRowId): Attempt<Request>[] => abandonedOf.all(node).map(decodeRow),
    /** The abandoned attempts that were to put a node at this place, the last one first. */
    abandonedAt: (parent: string, name: string): Attempt<Request>[] => abandonedAt.all(parent, name).map(decodeRow),
    /** Removes the attempts that were abandoned before `time` (row time). They cannot arrive any more. */
    removeAbandonedBefore(time: RowTime): void {
      removeOld.run(time);
    },
  };
}

export interface Snapshot {
  readonly id: SnapshotId;
  readonly inode: InodeId;
  /**
   * The inode's counter when the snapshot was taken. While the inode has this value, the snapshot is its newest
   * content.
   */
  readonly changes: number;
  /** The cache file of this kernel node id is the snapshot itself. Null: the snapshot has a file of its own. */
  readonly kernelNodeId: KernelNodeId | null;
  /** In bytes. */
  readonly size: number;
  readonly hash: string;
  readonly mtime: string;
  readonly synced: number;
  readonly boot: string;
}

const SNAPSHOT_COLUMNS = "id, inode, changes, lineage AS kernelNodeId, size, hash, mtime, synced, boot";

export function createSnapshots(database: Connection) {
  const byId = prepare<Snapshot>(database, `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE id = ?`);
  const newest = prepare<Snapshot>(
    database,
    `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE inode = ? ORDER BY id DESC LIMIT 1`,
  );
  const ofKernelNodeId = prepare<Snapshot>(database, `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE lineage = ?`);
  const itself = prepare<Snapshot>(
    database,
    `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE lineage >= ? AND lineage < ? ORDER BY lineage`,
  );
  const stale = prepare<Snapshot>(
    database,
    `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE lineage >= ? AND lineage < ?
     AND NOT EXISTS (SELECT 1 FROM inode WHERE inode.id = generation.inode AND inode.changes = generation.changes)`,
  );
  const copies = prepare<Snapshot>(
    database,
    `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE lineage IS NULL AND id >= ? AND id < ?`,
  );
  const nextCopy = prepare<{ id: SnapshotId | null }>(
    database,
    "SELECT min(id) AS id FROM generation WHERE lineage IS NULL AND id >= ?",
  );
  const ofInode = (isSent: boolean) =>
    prepare<Snapshot>(
      database,
      `SELECT ${SNAPSHOT_COLUMNS} FROM generation WHERE inode = ?
       AND ${isSent ? "" : "NOT "}EXISTS (SELECT 1 FROM attempt WHERE attempt.generation = generation.id)`,
    );
  const [unused, sent] = [ofInode(false), ofInode(true)];
  const insert = prepare(
    database,
    `INSERT INTO generation (id, inode, changes, lineage, size, hash, mtime, synced, boot)
     VALUES (@id, @inode, @changes, @kernelNodeId, @size, @hash, @mtime, @synced, @boot)`,
    [],
  );
  const sequence = prepare<{ seq: number }>(database, "SELECT seq FROM sqlite_sequence WHERE name = 'generation'");
  let reserved = 0;
  const detach = prepare(database, "UPDATE generation SET lineage = NULL WHERE id = ?");
  const remove = prepare(database, "DELETE FROM generation WHERE id = ?", []);
  const get = remember(database, ["generation"], (id: SnapshotId) => byId.get(id));
  const newestOf = remember(database, ["generation"], (inode: InodeId) => newest.get(inode));
  const snapshotsOf = remember(database, ["generation"], (kernelNodeId: KernelNodeId): readonly Snapshot[] =>
    ofKernelNodeId.all(kernelNodeId),
  );

  function drop({ inode, kernelNodeId }: Snapshot): void {
    newestOf.drop(inode);
    if (kernelNodeId !== null) snapshotsOf.drop(kernelNodeId);
  }

  return {
    get: (id: SnapshotId): Snapshot | undefined => get(id),
    newestOf: (inode: InodeId): Snapshot | undefined => newestOf(inode),
    /** The snapshots that are this cache file itself. */
    ofKernelNodeId: (kernelNodeId: KernelNodeId): readonly Snapshot[] => snapshotsOf(kernelNodeId),
    /** Tells the remembered answers that this kernel node id is new and has no snapshots. */
    noneOfKernelNodeId(kernelNodeId: KernelNodeId): void {
      snapshotsOf.tell(kernelNodeId, []);
    },
    /** The snapshots that are cache files themselves, with kernel node ids from `from` on and below `to`. */
    ofKernelNodeIds: (from: number, to: number): Snapshot[] => itself.all(from, to),
    /** The snapshots of `ofKernelNodeIds` whose cache file has changed since they were taken. */
    staleOfKernelNodeIds: (from: number, to: number): Snapshot[] => stale.all(from, to),
    /** The snapshots with files of their own, with ids from `from` on and below `to`. */
    copies: (from: number, to: number): Snapshot[] => copies.all(from, to),
    nextCopy: (from: number): SnapshotId | undefined => nextCopy.get(from)?.id ?? undefined,
    /** All reserved ids are below this one. */
    end: (): number => Math.max(reserved, sequence.get()?.seq ?? 0) + 1,
    /** The snapshots of this inode that no attempt sends. */
    unusedOf: (inode: InodeId): Snapshot[] => unused.all(inode),
    /** The snapshots of this inode that an attempt sends. */
    sentOf: (inode: InodeId): Snapshot[] => sent.all(inode),
    /** No id up to `upTo` is given out any more. */
    passIds(upTo: number): void {
      reserved = Math.max(reserved, upTo);
    },
    /** An id for a snapshot whose file is made before its row. It is given out once on this connection. */
    reserveId(): SnapshotId {
      reserved = Math.max(reserved, sequence.get()?.seq ?? 0) + 1;
      return snapshotId(reserved);
    },
    create(snapshot: Omit<Snapshot, "id"> & { readonly id?: SnapshotId }): Snapshot {
      const row = { ...snapshot, id: snapshot.id ?? this.reserveId() };
      const before = newestOf(row.inode);
      insert.run(row);
      const { id, inode, changes, kernelNodeId, size, hash, mtime, synced, boot } = row;
      const created = { id, inode, changes, kernelNodeId, size, hash, mtime, synced, boot };
      get.tell(id, created);
      // A snapshot with a reserved id may be created after one with a later id.
      newestOf.tell(inode, before !== undefined && before.id > id ? before : created);
      if (kernelNodeId !== null) snapshotsOf.drop(kernelNodeId);
      return created;
    },
    /** Records that the snapshot has a file of its own. */
    detach(id: SnapshotId): void {
      detach.run(id);
    },
    remove(id: SnapshotId): void {
      const current = get(id);
      remove.run(id);
      get.tell(id, undefined);
      if (current !== undefined) drop(current);
    },
  };
}

export interface Tombstone {
  readonly nodeId: string;
  readonly revision: number;
  /** Journal position of the deletion. Null: the journal has not told of it yet. */
  readonly position: number | null;
}

export function createTombstones(database: Connection) {
  const byId = prepare<Tombstone>(
    database,
    "SELECT node_id AS nodeId, revision, position FROM tombstone WHERE node_id = ?",
  );
  // The later of two deletions of a node counts. A known position of a deletion is kept.
  const insert = prepare(
    database,
    `INSERT INTO tombstone (node_id, revision, position) VALUES (@nodeId, @revision, @position)
     ON CONFLICT (node_id) DO UPDATE SET
       position = iif(excluded.revision > revision, excluded.position, coalesce(position, excluded.position)),
       revision = excluded.revision
     WHERE excluded.revision >= revision`,
  );
  const one = prepare<{ one: number }>(database, "SELECT 1 AS one FROM tombstone WHERE position <= ? LIMIT 1");
  const passed = prepare(database, "DELETE FROM tombstone WHERE position <= ?");
  const remove = prepare(database, "DELETE FROM tombstone WHERE node_id = ?");
  return {
    get: (nodeId: string): Tombstone | undefined => byId.get(nodeId),
    add(tombstone: Tombstone): void {
      insert.run(tombstone);
    },
    remove(nodeId: string): void {
      remove.run(nodeId);
    },
    isAnyUpTo: (position: number): boolean => one.get(position) !== undefined,
    /**
     * Forgets deletions up to this position: listing and journal have passed it. A deletion without a known position
     * stays.
     */
    forgetUpTo(position: number): void {
      passed.run(position);
    },
  };
}
