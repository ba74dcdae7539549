/** Journal entries as the store has them and as the contract shows them, and the filter of a reader. */
import { CHANGE_KINDS } from "../contract/journal-kinds.ts";
import type { FormerState, JournalEntry } from "../contract/resources.ts";
import { shownAuthor } from "./access.ts";
import { stateAt } from "./attribute-states.ts";
import { attributesOf } from "./node-rows.ts";
import type { Store } from "./store.ts";

export interface EntryRow {
  readonly position: number;
  readonly time: number;
  readonly kind: string;
  readonly nodeId: string;
  readonly revision: number;
  readonly parentId: string | null;
  readonly name: string;
  readonly head: string | null;
  readonly contentHash: string | null;
  readonly key: string | null;
  readonly branch: string | null;
  readonly branchHead: string | null;
  /** JSON of an Author. */
  readonly by: string | null;
}

export const ENTRY_COLUMNS = `c.position, c.time, c.kind, c.node AS nodeId, c.revision, c.parent AS parentId, c.name, c.head,
  v.hash AS contentHash, c.key, c.branch, c.branch_head AS branchHead, c.by`;

export function showEntry(row: EntryRow): JournalEntry {
  return { ...row, time: new Date(row.time).toISOString(), by: shownAuthor(row.by) };
}

/** Returns the entries of these positions, in this order. */
export function entriesAt(store: Store, positions: readonly number[]): JournalEntry[] {
  return store
    .prepare<EntryRow>(
      `SELECT ${ENTRY_COLUMNS} FROM json_each(?) j CROSS JOIN change c ON c.position = j.value
       LEFT JOIN version v ON v.id = c.head`,
    )
    .all(JSON.stringify(positions))
    .map(showEntry);
}

/** Adds the node's former state, if it existed. */
export function withBefore(store: Store, entry: JournalEntry): JournalEntry {
  return { ...entry, before: stateBefore(store, entry) };
}

function stateBefore(store: Store, { kind, revision, nodeId, position }: JournalEntry): FormerState | null {
  if (revision === 1 || !CHANGE_KINDS.some((own) => own === kind)) return null;
  const row = store
    .prepare<Omit<FormerState, "attributes" | "isDeleted"> & { position: number; attributes: string; deleted: number }>(
      `SELECT position, parent AS parentId, name, head, attributes, deleted FROM change
       WHERE node = ? AND activity = 0 AND position < ? ORDER BY position DESC LIMIT 1`,
    )
    .get(nodeId, position);
  if (row === undefined) return null;
  const { parentId, name, head, attributes, deleted } = row;
  const state = stateAt(store, nodeId, row.position, attributes);
  return { parentId, name, head, attributes: attributesOf({ attributes: state }), isDeleted: deleted === 1 };
}

/** Fields of an entry, and their SQL. */
export const ENTRY_FIELDS = {
  position: "c.position",
  time: "c.time",
  kind: "c.kind",
  nodeId: "(c.node)",
  revision: "c.revision",
  parentId: "c.parent",
  name: "c.name",
  head: "c.head",
  contentHash: "(SELECT hash FROM version WHERE id = c.head)",
  key: "c.key",
  branch: "c.branch",
  branchHead: "c.branch_head",
  by: "(c.by ->> 'account')",
} as const satisfies Record<Exclude<keyof JournalEntry, "before">, string>;

/** Selects the entries that match all given fields. */
export interface EntryFilter {
  readonly workspace: string;
  readonly nodeId?: string | undefined;
  /** Name of an account. */
  readonly by?: string | undefined;
  readonly mount?: string | undefined;
}

export const isFiltered = ({ nodeId, by, mount }: EntryFilter) =>
  nodeId !== undefined || by !== undefined || mount !== undefined;

/**
 * SQL that selects `columns` of the entries with :after < position <= :end, in the order of positions. It reads the
 * index of the node and checks the other fields row by row; without a node it reads the index of the mount, of the
 * account, or of both. Its values are those of the filter.
 */
export function selectEntries(columns: string, { nodeId, by, mount }: EntryFilter, order: "ASC" | "DESC"): string {
  const asked = [
    "c.workspace = :workspace AND c.entry IS NOT NULL AND c.position > :after AND c.position <= :end",
    ...(nodeId === undefined ? [] : ["c.node = :nodeId"]),
    ...(by === undefined ? [] : ["c.by IS NOT NULL AND c.by ->> 'account' = :by"]),
    ...(mount === undefined ? [] : ["c.by ->> 'mount' IS NOT NULL AND c.by ->> 'mount' = :mount"]),
  ].join(" AND ");
  const from = (index: string, also = "") =>
    `SELECT ${columns} FROM change c INDEXED BY ${index} WHERE ${asked}${also}`;
  const index = mount === undefined ? "change_account" : by === undefined ? "change_mount" : "change_mount_account";
  // A node has one index of its changes, and one of its activities.
  const which =
    nodeId !== undefined
      ? `${from("change_node", " AND c.activity = 0")} UNION ALL ${from("change_activity", " AND c.activity = 1")}`
      : from(mount === undefined && by === undefined ? "change_entry" : index);
  return `${which} ORDER BY 1 ${order} LIMIT +:limit`;
}
