/** Node rows: the known state of each node, and the time when the plan looks at it next. */
import { type Attributes, sameValue } from "../contract/attributes.ts";
import type { Node } from "../contract/resources.ts";
import { earliestOf, millisecondsOf, type RowTime, rowTime } from "../lib/clocks.ts";
import type { ChangedRows } from "./changed.ts";
import {
  BEFORE_FIRST,
  type Connection,
  differences,
  prepare,
  prepareColumn,
  prepareInserts,
  prepareUpdates,
  remember,
  type Statement,
} from "./database.ts";
import { type After, type EntryId, type InodeId, type NodeRowId, nodeRowId } from "./ids.ts";
import type { InodeKind } from "./inodes.ts";
import { decodePriority, encodePriority, PRIORITIES, type Priority, type PriorityColumn } from "./priority.ts";

/**
 * The position of a write of ours. An unconfirmed write has no known position. It has the row time at which it became
 * known that the write was carried out.
 */
export type WritePosition = number | { readonly unconfirmedSince: RowTime };

/** The last state that we and the gateway agreed on. */
export interface Base {
  /** Node id of the folder. Null for the root. */
  readonly parent: string | null;
  readonly name: string;
  readonly head: string | null;
  readonly hash: string | null;
  /** In bytes. */
  readonly size: number;
  readonly attributes: Attributes;
  readonly revision: number;
  /** The position of our last acknowledged write to the node. Undefined: there is none. */
  readonly position: WritePosition | undefined;
  /** ISO 8601. */
  readonly modifiedAt: string;
}

/** The last state that the gateway told of the node, if it differs from base. */
export type Seen =
  | { readonly node: Node }
  /** `position`: journal position of the deletion. Absent until the journal tells of it. */
  | { readonly deleted: true; readonly revision: number; readonly position?: number };

export interface NodeRow {
  readonly id: NodeRowId;
  /** Null: a program removed the name, and the deletion is to be sent. */
  readonly entry: EntryId | null;
  readonly kind: "file" | "folder";
  /** The gateway's id. Null: unborn. */
  readonly nodeId: string | null;
  /** Null exactly when unborn. */
  readonly base: Base | null;
  readonly seen: Seen | null;
  /** In row time. */
  readonly seenAt: RowTime | null;
  /** The last local change, in row time. Without a local change: the time when the node came in. Null: not known. */
  readonly changedAt: RowTime | null;
  /** The first unsent local change, in row time. Null: clean. */
  readonly dirtySince: RowTime | null;
  /** The time when the plan looks at the row next, in row time. Null: not before something changes. */
  readonly due: RowTime | null;
  /** The place that a program moved the node away from. */
  readonly leftParent: InodeId | null;
  readonly leftName: string | null;
  /** Of a row without an entry and without a node: the time when its name was removed. */
  readonly leftAt: RowTime | null;
  /** The gateway's reason for refusing the node. Null: not parked. */
  readonly parked: string | null;
  /** The write-back loop sets it, and has separate slots for each priority class. */
  readonly priority: Priority;
}

interface Row extends Omit<NodeRow, "base" | "seen" | "changedAt" | "priority"> {
  /** 0: not known. */
  readonly changedAt: RowTime | 0;
  readonly priority: PriorityColumn;
  readonly baseParent: string | null;
  readonly baseName: string | null;
  readonly baseHead: string | null;
  readonly baseHash: string | null;
  readonly baseSize: number | null;
  readonly baseAttributes: string | null;
  readonly baseRevision: number | null;
  readonly basePosition: number | null;
  readonly baseModified: string | null;
  readonly seen: string | null;
}

const COLUMNS = `id, entry, kind, node_id AS nodeId, base_parent AS baseParent, base_name AS baseName,
  base_head AS baseHead, base_hash AS baseHash, base_size AS baseSize, base_attributes AS baseAttributes,
  base_revision AS baseRevision, base_position AS basePosition, base_modified AS baseModified, seen, seen_at AS seenAt,
  changed_at AS changedAt, dirty_since AS dirtySince, due, left_parent AS leftParent, left_name AS leftName,
  left_at AS leftAt, parked, bulk AS priority`;

/** The column: 0 without a write, and a negative time for an unconfirmed one. */
function decodePosition(column: number | null): WritePosition | undefined {
  if (column === null || column === 0) return undefined;
  return column > 0 ? column : { unconfirmedSince: rowTime(-column) };
}

function encodePosition(position: WritePosition | undefined): number {
  if (typeof position !== "object") return position ?? 0;
  return -Math.max(1, millisecondsOf(position.unconfirmedSince));
}

function decode(row: Row): NodeRow {
  const { id, entry, kind, nodeId, seenAt, changedAt, dirtySince, due, leftParent, leftName, leftAt, parked } = row;
  const base: Base | null =
    nodeId === null
      ? null
      : {
          parent: row.baseParent,
          name: row.baseName ?? "",
          head: row.baseHead,
          hash: row.baseHash,
          size: row.baseSize ?? 0,
          attributes: JSON.parse(row.baseAttributes ?? "{}") as Attributes,
          revision: row.baseRevision ?? 0,
          position: decodePosition(row.basePosition),
          modifiedAt: row.baseModified ?? "1970-01-01T00:00:00.000Z",
        };
  const seen = row.seen === null ? null : (JSON.parse(row.seen) as Seen);
  return {
    id,
    entry,
    kind,
    nodeId,
    base,
    seen,
    seenAt,
    changedAt: changedAt === 0 ? null : changedAt,
    dirtySince,
    due,
    leftParent,
    leftName,
    leftAt,
    parked,
    priority: decodePriority(row.priority),
  };
}

const asRead = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;
const baseAsRead = (base: Base): Base => ({ ...base, attributes: asRead(base.attributes) });

function encodeBase(base: Base | null) {
  return {
    baseParent: base?.parent ?? null,
    baseName: base?.name ?? null,
    baseHead: base?.head ?? null,
    baseHash: base?.hash ?? null,
    baseSize: base?.size ?? null,
    baseAttributes: base === null ? null : JSON.stringify(base.attributes),
    baseRevision: base?.revision ?? null,
    basePosition: base === null ? null : encodePosition(base.position),
    baseModified: base?.modifiedAt ?? null,
  };
}

/** Uses Object.assign: spreading an object into one that lacks its keys costs a microsecond for each key. */
function encode(node: Omit<NodeRow, "id">) {
  const { entry, kind, nodeId, base, seenAt, changedAt, dirtySince, due, leftParent, leftName, leftAt, parked } = node;
  const seen = node.seen === null ? null : JSON.stringify(node.seen);
  const priority = encodePriority(node.priority);
  const itself = { entry, kind, nodeId, seen, seenAt, changedAt: changedAt ?? 0, dirtySince, due };
  return Object.assign(encodeBase(base), itself, { leftParent, leftName, leftAt, parked, priority });
}

const CHANGEABLE = {
  entry: "entry",
  kind: "kind",
  nodeId: "node_id",
  baseParent: "base_parent",
  baseName: "base_name",
  baseHead: "base_head",
  baseHash: "base_hash",
  baseSize: "base_size",
  baseAttributes: "base_attributes",
  baseRevision: "base_revision",
  basePosition: "base_position",
  baseModified: "base_modified",
  seen: "seen",
  seenAt: "seen_at",
  changedAt: "changed_at",
  dirtySince: "dirty_since",
  due: "due",
  leftParent: "left_parent",
  leftName: "left_name",
  leftAt: "left_at",
  parked: "parked",
  priority: "bulk",
};

type Itself = Exclude<keyof NodeRow, "base" | "seen" | "changedAt" | "priority">;

/** Fields that are stored as they are. */
const ITSELF = Object.keys(CHANGEABLE).filter(
  (field): field is Itself => !["seen", "changedAt", "priority"].includes(field) && !field.startsWith("base"),
);

/** The fields of `next` that differ from `current`, as columns. */
function changedColumns(current: NodeRow, next: NodeRow): Readonly<Record<string, unknown>> {
  const columns: Partial<Record<keyof Row, Row[keyof Row]>> = {};
  for (const field of ITSELF) if (next[field] !== current[field]) columns[field] = next[field];
  if (next.changedAt !== current.changedAt) columns.changedAt = next.changedAt ?? 0;
  if (next.priority !== current.priority) columns.priority = encodePriority(next.priority);
  if (next.base !== current.base) Object.assign(columns, differences(encodeBase(current.base), encodeBase(next.base)));
  if (next.seen !== current.seen) columns.seen = next.seen === null ? null : JSON.stringify(next.seen);
  return columns;
}

/**
 * A place in the queue, whose order is the oldest first. Any number of rows may have the same time: they are in order
 * of id.
 */
export interface QueuePlace {
  readonly since: RowTime;
  readonly id: After<NodeRowId>;
}

export interface Pending extends QueuePlace {
  readonly id: NodeRowId;
  readonly bytes: number;
}

/** A node whose base is in a given folder. */
export interface Below {
  readonly id: NodeRowId;
  readonly name: string;
  readonly nodeId: string;
  readonly position: WritePosition | undefined;
}

type BelowRow = Omit<Below, "position"> & Pick<Row, "basePosition">;

const decodeBelow = ({ id, name, nodeId, basePosition }: BelowRow): Below => ({
  id,
  name,
  nodeId,
  position: decodePosition(basePosition),
});

/** Undefined: the row is not in the queue, and the list begins anew. */
const queuePlaceOf = ({ dirtySince, id }: NodeRow): QueuePlace | undefined =>
  dirtySince === null ? undefined : { since: dirtySince, id };

/**
 * Rows after a place. There are two statements, because for a comparison of pairs SQLite uses the index only for the
 * first half.
 */
function inOrder<Row>(statement: (after: string) => Statement<Row>): (limit: number, after?: QueuePlace) => Row[] {
  const same = statement("node.dirty_since = @since AND node.id > @id");
  const later = statement("node.dirty_since > @since");
  return (limit, after = { since: BEFORE_FIRST, id: 0 }) => {
    const rows = same.all({ ...after, limit });
    return rows.length === limit ? rows : [...rows, ...later.all({ since: after.since, limit: limit - rows.length })];
  };
}

/** SQL, for a node and the inode behind its entry: the bytes of its content that must be sent. */
export const PENDING_BYTES = `iif(inode.kind = 'file' AND inode.content <> 'clean'
  AND (inode.hash IS NULL OR node.base_hash IS NULL OR inode.hash <> node.base_hash), inode.size, 0)`;

export function createNodes(database: Connection, changed: ChangedRows) {
  const select = (where: string) => prepare<Row>(database, `SELECT ${COLUMNS} FROM node WHERE ${where}`);
  const byId = select("id = ?");
  const byEntry = select("entry = ?");
  const byNodeId = select("node_id = ?");
  const byPlace = select("base_parent = ? AND base_name = ?");
  const below = select("base_parent = ?");
  const belowAfter = prepare<BelowRow>(
    database,
    `SELECT id, base_name AS name, node_id AS nodeId, base_position AS basePosition FROM node
     WHERE base_parent = @parent AND (base_name, id) > (@name, @id) ORDER BY base_name, id LIMIT +@limit`,
  );
  const belowCount = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM node WHERE base_parent = ?");
  const unconfirmed = select("base_position < 0 AND base_position < -@since ORDER BY base_position DESC LIMIT +@limit");
  const byLeft = select("left_parent = ? AND left_name = ? ORDER BY left_at DESC, id DESC");
  // The index contains the whole answer, so no row is read.
  const dueNow = prepareColumn<NodeRowId>(
    database,
    "SELECT id FROM node WHERE bulk = ? AND due <= ? ORDER BY due, id LIMIT +?",
  );
  const nextOfPriority = prepare<{ due: RowTime }>(
    database,
    "SELECT due FROM node WHERE bulk = ? AND due > ? ORDER BY due LIMIT 1",
  );
  const dirty = inOrder((after) =>
    select(`dirty_since IS NOT NULL AND ${after} ORDER BY dirty_since, id LIMIT +@limit`),
  );
  const parked = inOrder((after) => select(`parked IS NOT NULL AND ${after} ORDER BY dirty_since, id LIMIT +@limit`));
  const counts = prepare<{ dirty: number; parked: number; oldest: RowTime | null }>(
    database,
    `SELECT (SELECT count(*) FROM node WHERE dirty_since IS NOT NULL) AS dirty,
       (SELECT count(*) FROM node WHERE parked IS NOT NULL) AS parked,
       (SELECT min(dirty_since) FROM node WHERE dirty_since IS NOT NULL) AS oldest`,
  );
  const dirtyBefore = prepare<{ dirty: number; parked: number }>(
    database,
    `SELECT (SELECT count(*) FROM node WHERE dirty_since <= @time) AS dirty,
       (SELECT count(*) FROM node WHERE parked IS NOT NULL AND dirty_since <= @time) AS parked`,
  );
  const pending = (bytes: string) =>
    inOrder((after) =>
      prepare<Pending>(
        database,
        `SELECT node.dirty_since AS since, node.id AS id, ${bytes} AS bytes
         FROM node LEFT JOIN entry ON entry.id = node.entry LEFT JOIN inode ON inode.id = entry.inode
         WHERE node.dirty_since IS NOT NULL AND ${after} ORDER BY node.dirty_since, node.id LIMIT +@limit`,
      ),
    );
  const pendingBytes = pending(PENDING_BYTES);
  const pendingGrowth = pending("iif(node.kind = 'file', coalesce(inode.size, 0) - coalesce(node.base_size, 0), 0)");
  const expedite = prepare(
    database,
    `UPDATE node SET due = @now WHERE id IN (SELECT id FROM node INDEXED BY node_due
       WHERE bulk = @bulk AND due > @now AND dirty_since IS NOT NULL AND parked IS NULL ORDER BY due LIMIT +@limit)`,
  );
  const entriesIn = prepare<{ id: EntryId }>(
    database,
    "SELECT id FROM entry WHERE parent = ? AND id > ? ORDER BY id LIMIT +?",
  );
  const expediteEntry = prepare(
    database,
    "UPDATE node SET due = @now WHERE entry = @entry AND dirty_since IS NOT NULL AND parked IS NULL AND due > @now",
  );
  const namesOf = prepare<{ id: EntryId }>(
    database,
    "SELECT id FROM entry WHERE inode = ? AND id > ? ORDER BY id LIMIT +?",
  );
  const sentSince = prepare<{ one: number }>(
    database,
    `SELECT 1 AS one FROM entry JOIN node ON node.entry = entry.id
     WHERE entry.inode = ? AND (node.dirty_since IS NULL OR node.dirty_since > ?) LIMIT 1`,
  );
  const lookAtEntry = prepare(
    database,
    "UPDATE node SET due = @now WHERE entry = @entry AND due IS NULL AND dirty_since IS NULL",
  );
  const insert = prepareInserts(database, "node", CHANGEABLE);
  const change = prepareUpdates(database, "node", "id", CHANGEABLE);
  const remove = prepare(database, "DELETE FROM node WHERE id = ?", []);

  const one = (row: Row | undefined): NodeRow | undefined => (row === undefined ? undefined : decode(row));
  const tables = ["node"];
  const get = remember(database, tables, (id: NodeRowId) => {
    const node = one(byId.get(id));
    if (node?.entry != null) ofEntry.tell(node.entry, id);
    return node;
  });
  const idOf = <Key extends number | string>(by: Statement<Row>) =>
    remember(database, tables, (key: Key) => {
      const node = one(by.get(key));
      if (node !== undefined) get.tell(node.id, node);
      return node?.id;
    });
  const ofEntry = idOf<EntryId>(byEntry);
  const ofNodeId = idOf<string>(byNodeId);

  /** Tells the remembered answers that the row with this id was `current` and is now `next`. */
  function tell(id: NodeRowId, current: NodeRow | undefined, next: NodeRow | undefined): void {
    get.tell(id, next);
    if (current?.entry !== next?.entry) {
      if (current?.entry != null) ofEntry.tell(current.entry, undefined);
      if (next?.entry != null) ofEntry.tell(next.entry, id);
    }
    if (current?.nodeId === next?.nodeId) return;
    if (current?.nodeId != null) ofNodeId.tell(current.nodeId, undefined);
    if (next?.nodeId != null) ofNodeId.tell(next.nodeId, id);
  }

  const nextDueAfter = (now: RowTime): RowTime | undefined =>
    earliestOf(PRIORITIES.map((priority) => nextOfPriority.get(encodePriority(priority), now)?.due));

  return {
    get,
    ofEntry(entry: EntryId): NodeRow | undefined {
      const id = ofEntry(entry);
      return id === undefined ? undefined : get(id);
    },
    noneOfEntry(entry: EntryId): void {
      ofEntry.tell(entry, undefined);
    },
    entryGone(row: NodeRow): void {
      tell(row.id, row, { ...row, entry: null });
    },
    ofNodeId(nodeId: string): NodeRow | undefined {
      const id = ofNodeId(nodeId);
      return id === undefined ? undefined : get(id);
    },
    /** Rows whose base is at this place. All but one at most are about to be deleted or moved. */
    atPlace: (parent: string, name: string): NodeRow[] => byPlace.all(parent, name).map(decode),
    below: (parent: string): NodeRow[] => below.all(parent).map(decode),
    /**
     * The rows with a base in the folder `parent`, in order of name after the given one (undefined: from the first).
     * Reads only the columns that are compared with a list.
     */
    belowAfter: (parent: string, after: Below | undefined, limit: number): Below[] =>
      belowAfter.all({ parent, name: after?.name ?? "", id: after?.id ?? 0, limit }).map(decodeBelow),
    countBelow: (parent: string): number => belowCount.get(parent)?.count ?? 0,
    /** Rows with an unconfirmed write that became known after `since` (row time), the first known first. */
    unconfirmed: (since: RowTime, limit: number): NodeRow[] => unconfirmed.all({ since, limit }).map(decode),
    /** The nodes that programs moved away or removed from this place, the latest first. */
    thatLeft: (parent: InodeId, name: string): NodeRow[] => byLeft.all(parent, name).map(decode),
    /** Rows of one priority class that are due, the longest due first. */
    due: (priority: Priority, now: RowTime, limit: number): NodeRowId[] => dueNow(encodePriority(priority), now, limit),
    nextDue: (): RowTime | undefined => nextDueAfter(BEFORE_FIRST),
    nextDueAfter,
    /** Dirty rows, oldest first. `after`: the last row of an earlier call. */
    dirty: (limit: number, after?: NodeRow): NodeRow[] => dirty(limit, after && queuePlaceOf(after)).map(decode),
    /** Rows that the gateway refused, in the same order. */
    parked: (limit: number, after?: NodeRow): NodeRow[] => parked(limit, after && queuePlaceOf(after)).map(decode),
    counts: () => counts.get() ?? { dirty: 0, parked: 0, oldest: null },
    countDirtyBefore: (time: RowTime) => dirtyBefore.get({ time }) ?? { dirty: 0, parked: 0 },
    /**
     * Dirty rows, oldest first after the given place, each with the bytes of its content that the gateway does not
     * have.
     */
    pendingBytes,
    /**
     * Dirty rows, oldest first after the given place, each with the bytes by which its file is larger than at the
     * gateway. Negative for deletions.
     */
    pendingGrowth,
    /**
     * Makes up to `limit` dirty rows due now that are due later, in each priority class the earliest first. False:
     * there are no more.
     */
    expedite(now: RowTime, limit: number): boolean {
      let left = limit;
      for (const priority of PRIORITIES) {
        if (left > 0) left -= expedite.run({ now, bulk: encodePriority(priority), limit: left }).changes;
      }
      return left === 0;
    },
    /**
     * Makes the dirty rows of up to `limit` entries of a folder due now, in order of id after the given one. Returns
     * the id of the last of these entries. Undefined: there are no more.
     */
    expediteIn(folder: InodeId, now: RowTime, after: After<EntryId>, limit: number): EntryId | undefined {
      const entries = entriesIn.all(folder, after, limit);
      for (const { id } of entries) expediteEntry.run({ now, entry: id });
      return entries.length < limit ? undefined : entries.at(-1)?.id;
    },
    /**
     * Makes up to `limit` names of an inode due now, in order of entry id after the given one. Names that are dirty or
     * have a due time are left alone. Returns the same as `expediteIn`.
     */
    lookAtNames(inode: InodeId, now: RowTime, after: After<EntryId>, limit: number): EntryId | undefined {
      const entries = namesOf.all(inode, after, limit);
      for (const { id } of entries) lookAtEntry.run({ now, entry: id });
      return entries.length < limit ? undefined : entries.at(-1)?.id;
    },
    /** True if all names of an inode are dirty since `since` (row time) or longer. */
    areNamesDirty: (inode: InodeId, since: RowTime): boolean => sentSince.get(inode, since) === undefined,
    create(node: Omit<NodeRow, "id">): NodeRow {
      const id = nodeRowId(insert(encode(node)));
      const base = node.base === null ? null : baseAsRead(node.base);
      const seen = node.seen === null ? null : asRead(node.seen);
      const created: NodeRow = { ...node, base, seen, id };
      tell(id, undefined, created);
      if (node.base !== null) changed.nodeOf(node.entry);
      return created;
    },
    update(id: NodeRowId, values: Partial<Omit<NodeRow, "id">>): NodeRow {
      const current = get(id);
      if (current === undefined) throw new Error(`no node row ${id}`);
      const next = { ...current, ...values };
      change(id, changedColumns(current, next));
      // The remembered values must be those that would be read back: JSON leaves out undefined fields.
      if (next.base !== null && next.base !== current.base) next.base = baseAsRead(next.base);
      if (next.seen !== null && next.seen !== current.seen) next.seen = asRead(next.seen);
      tell(id, current, next);
      if (current.entry !== next.entry || current.base?.modifiedAt !== next.base?.modifiedAt) {
        changed.nodeOf(current.entry);
        changed.nodeOf(next.entry);
      }
      return next;
    },
    remove(id: NodeRowId): void {
      const current = get(id);
      remove.run(id);
      tell(id, current, undefined);
    },
  };
}

/** The row of a node that the gateway does not have yet. */
export function unborn(entry: EntryId, kind: "file" | "folder", now: RowTime, due: RowTime): Omit<NodeRow, "id"> {
  return {
    entry,
    kind,
    nodeId: null,
    base: null,
    seen: null,
    seenAt: null,
    changedAt: now,
    dirtySince: now,
    due,
    leftParent: null,
    leftName: null,
    leftAt: null,
    parked: null,
    priority: "small",
  };
}

/** A node row that agrees with the gateway. */
export function born(entry: EntryId | null, node: Node): Omit<NodeRow, "id"> {
  return {
    entry,
    kind: node.kind,
    nodeId: node.id,
    base: baseOf(node),
    seen: null,
    seenAt: null,
    changedAt: null,
    dirtySince: null,
    due: null,
    leftParent: null,
    leftName: null,
    leftAt: null,
    parked: null,
    priority: "small",
  };
}

/** True if the write has a known position after `limit`. */
export const isKnownAfter = (position: WritePosition | undefined, limit: number): boolean =>
  typeof position === "number" && position > limit;

export function baseOf(node: Node, position?: WritePosition): Base {
  return {
    parent: node.parentId,
    name: node.name,
    head: node.head,
    hash: node.contentHash,
    size: node.size,
    attributes: node.attributes,
    revision: node.revision,
    position,
    modifiedAt: node.modifiedAt,
  };
}

/**
 * Compares the known fields. The hash may be unknown: some gateways have none, and of a node that was just sent only
 * the sent fields are known.
 */
export function isSameContent(a: Pick<Base, "head" | "hash">, b: Pick<Base, "head" | "hash">): boolean {
  return a.head === b.head && (a.hash === null || b.hash === null || a.hash === b.hash);
}

export function isSameBase(a: Base, b: Base): boolean {
  const isPlaced = a.parent === b.parent && a.name === b.name;
  return isPlaced && isSameContent(a, b) && sameValue(a.attributes, b.attributes);
}

/** The newest revision that is known of the node. */
export function newestRevision(row: NodeRow): number {
  return Math.max(row.base?.revision ?? 0, row.seen === null ? 0 : revisionOf(row.seen));
}

/** True if the revision is newer than base, or there is no base. */
export function isAfterBase({ base }: Pick<NodeRow, "base">, revision: number): boolean {
  return base === null || revision > base.revision;
}

/** True if the revision is newer than that of `seen`, or there is no `seen`. */
export function isAfterSeen({ seen }: Pick<NodeRow, "seen">, revision: number): boolean {
  return seen === null || revision > revisionOf(seen);
}

/** The revision of the seen state. */
export function revisionOf(seen: Seen): number {
  return "deleted" in seen ? seen.revision : seen.node.revision;
}

/** The kind of the node's inode. */
export function kindOf(node: Node): InodeKind {
  return node.kind === "folder" ? "folder" : (node.attributes.type ?? "file");
}
