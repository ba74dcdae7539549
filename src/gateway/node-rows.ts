/**
 * Nodes as they are now or were at a position: rows, their paths, and the Node of the contract.
 *
 * Branches: places and attributes are common to all branches, content has one head per branch. A branch without a head
 * of its own shows the head of main; writing on it makes one. The head of a branch is its latest version, so the
 * versions alone show the head at any position. Every file has a head on main.
 */
import { type Attributes, attributes } from "../contract/attributes.ts";
import type { Node, WrittenNode } from "../contract/resources.ts";
import { stateAt } from "./attribute-states.ts";
import type { Context } from "./context.ts";
import type { Store } from "./store.ts";

/** A node with one of its states: the latest, or that of a position. */
export interface NodeRow {
  readonly id: string;
  readonly workspace: string;
  readonly kind: "file" | "folder";
  readonly createdAt: number;
  readonly provisioned: number;
  readonly versions: number;
  readonly position: number;
  readonly revision: number;
  readonly parent: string | null;
  readonly name: string;
  readonly head: string | null;
  /** JSON. */
  readonly attributes: string;
  readonly key: string | null;
  readonly deleted: number;
  readonly mimeType: string | null;
  readonly size: number | null;
  readonly hash: string | null;
  readonly headTime: number | null;
}

/** Returns the node as it is now, also a deleted one. */
export function findNode(store: Store, id: string): NodeRow | undefined {
  // Most requests read this several times: an array costs half of an object with named columns.
  const row = store
    .prepare<NodeColumns>(
      `SELECT id, workspace, kind, created_at, provisioned, versions, position, revision, parent, name,
              head, attributes, key, deleted, mime_type, size, hash, head_time
       FROM node WHERE id = ?`,
    )
    .raw()
    .get(id);
  if (row === undefined) return undefined;
  return {
    id: row[0],
    workspace: row[1],
    kind: row[2],
    createdAt: row[3],
    provisioned: row[4],
    versions: row[5],
    position: row[6],
    revision: row[7],
    parent: row[8],
    name: row[9],
    head: row[10],
    attributes: row[11],
    key: row[12],
    deleted: row[13],
    mimeType: row[14],
    size: row[15],
    hash: row[16],
    headTime: row[17],
  };
}

type NodeColumns = [
  ...[id: string, workspace: string, kind: NodeRow["kind"], createdAt: number, provisioned: number, versions: number],
  ...[position: number, revision: number, parent: string | null, name: string, head: string | null],
  ...[attributes: string, key: string | null, deleted: number, mimeType: string | null, size: number | null],
  ...[hash: string | null, headTime: number | null],
];

/** Returns the node as it was at a position; undefined when it did not exist yet. */
export function nodeAt(store: Store, id: string, asOf: number): NodeRow | undefined {
  const now = findNode(store, id);
  if (now === undefined || now.position <= asOf) return now;
  const then = store
    .prepare<NodeRow>(
      `SELECT n.id, n.workspace, n.kind, n.created_at AS createdAt, n.provisioned, n.versions,
              c.position, c.revision, c.parent, c.name, c.head, c.attributes, c.key, c.deleted,
              v.mime_type AS mimeType, v.size, v.hash, v.created_at AS headTime
       FROM node n JOIN change c ON c.position =
         (SELECT max(p.position) FROM change p WHERE p.node = :id AND p.activity = 0 AND p.position <= :asOf)
       LEFT JOIN version v ON v.id = c.head WHERE n.id = :id`,
    )
    .get({ id, asOf });
  return then === undefined ? undefined : { ...then, attributes: stateAt(store, id, then.position, then.attributes) };
}

/** The branch whose content a node shows when none is named. */
export const MAIN = "main";

interface BranchHead {
  readonly head: string;
  readonly mimeType: string;
  readonly size: number;
  readonly hash: string;
  readonly headTime: number;
  readonly mtime: string | null;
}

/** Returns the row with the content of the branch as of a position, instead of the content of main. */
export function onBranch(store: Store, row: NodeRow, branch: string | undefined, asOf: number): NodeRow {
  if (branch === undefined || branch === MAIN || row.kind !== "file") return row;
  const found = store
    .prepare<BranchHead>(
      `SELECT id AS head, mime_type AS mimeType, size, hash, created_at AS headTime, mtime FROM version
       WHERE node = ? AND branch = ? AND branch <> 'main' AND position <= ? ORDER BY number DESC LIMIT 1`,
    )
    .get(row.id, branch, asOf);
  if (found === undefined) return row;
  const { mtime, ...content } = found;
  const { mtime: _, ...common } = attributesOf(row);
  return { ...row, ...content, attributes: JSON.stringify(mtime === null ? common : { ...common, mtime }) };
}

/** Returns the node that has a name in a folder now, unprovisioned folders included. */
export function findChild(store: Store, parent: string, name: string): NodeRow | undefined {
  const row = store
    .prepare<{ id: string }>("SELECT id FROM node WHERE parent = ? AND name = ? AND deleted = 0")
    .get(parent, name);
  return row === undefined ? undefined : findNode(store, row.id);
}

/** Returns the id of the node that the path index shows under a name as of a position. */
export function placedChild(store: Store, parent: string, name: string, asOf: number): string | undefined {
  const now = store
    .prepare<{ node: string }>("SELECT node FROM place WHERE parent = ? AND name = ? AND since <= ?")
    .get(parent, name, asOf);
  if (now !== undefined) return now.node;
  return store
    .prepare<{ node: string }>(
      "SELECT node FROM past_place WHERE parent = :parent AND until > :asOf AND name = :name AND since <= :asOf",
    )
    .get({ parent, name, asOf })?.node;
}

/** True if the path index shows the node at its own name as of a position. It always shows a root. */
export function isPlaced(store: Store, id: string, asOf: number): boolean {
  const row = nodeAt(store, id, asOf);
  if (row === undefined || row.deleted === 1) return false;
  return row.parent === null || placedChild(store, row.parent, row.name, asOf) === id;
}

/** Undefined when the path index does not show the whole path as of the position. */
export function nodeByPath(store: Store, root: string, names: readonly string[], asOf: number): NodeRow | undefined {
  let id: string | undefined = root;
  for (const name of names) {
    id = placedChild(store, id, name, asOf);
    if (id === undefined) return undefined;
  }
  // A workspace has its root before the index shows its creation.
  const row = nodeAt(store, id, asOf) ?? (names.length === 0 ? findNode(store, id) : undefined);
  return row === undefined || row.deleted === 1 ? undefined : row;
}

/** True if a node is `ancestor` or below it. */
export function isWithin(store: Store, node: string, ancestor: string): boolean {
  const parentOf = store.prepare<{ parent: string | null }>("SELECT parent FROM node WHERE id = ?");
  for (let id: string | null | undefined = node; typeof id === "string"; id = parentOf.get(id)?.parent) {
    if (id === ancestor) return true;
  }
  return false;
}

/** Returns the path of a node through its folders as of a position (Infinity: now). */
export function pathOf(store: Store, row: Pick<NodeRow, "parent" | "name">, asOf: number): string {
  const names: string[] = [];
  let at: Pick<NodeRow, "parent" | "name"> | undefined = row;
  while (at !== undefined && at.parent !== null) {
    names.push(at.name);
    at = placeOf(store, at.parent, asOf);
  }
  return `/${names.reverse().join("/")}`;
}

/** Returns the place of a node as of a position; for a deleted node the place from which it was deleted. */
export function placeOf(store: Store, id: string, asOf: number): Pick<NodeRow, "parent" | "name"> | undefined {
  const now = store
    .prepare<{ parent: string | null; name: string; position: number }>(
      "SELECT parent, name, position FROM node WHERE id = ?",
    )
    .get(id);
  if (now === undefined || now.position <= asOf) return now;
  return store
    .prepare<{ parent: string | null; name: string }>(
      "SELECT parent, name FROM change WHERE node = ? AND activity = 0 AND position <= ? ORDER BY position DESC LIMIT 1",
    )
    .get(id, asOf);
}

const moment = (milliseconds: number) => new Date(milliseconds).toISOString();

export function attributesOf(row: Pick<NodeRow, "attributes">): Attributes {
  return row.attributes === "{}" ? {} : attributes.parse(JSON.parse(row.attributes));
}

export function showNode(row: NodeRow, path: string): Node {
  return {
    id: row.id,
    kind: row.kind,
    path,
    name: row.name,
    parentId: row.parent,
    mimeType: row.mimeType,
    size: row.size ?? 0,
    head: row.head,
    contentHash: row.hash,
    lastKey: row.key,
    revision: row.revision,
    createdAt: moment(row.createdAt),
    modifiedAt: moment(row.headTime ?? row.createdAt),
    // Attributes were checked when they came in.
    attributes: row.attributes === "{}" ? {} : JSON.parse(row.attributes),
  };
}

/** Returns a node as it is now, for answers by id. */
export function showCurrent(store: Store, row: NodeRow, branch?: string): Node {
  const shown = onBranch(store, row, branch, Number.MAX_SAFE_INTEGER);
  return showNode(shown, pathOf(store, row, Number.POSITIVE_INFINITY));
}

/** The result of a write: the node as of the last change of the request. */
export interface Written {
  readonly id: string;
  readonly position: number;
  /** Branch whose content is shown; default main. */
  readonly branch?: string | undefined;
}

/** Returns the answer of a write, both at once and at any later time: it depends on history only. */
export function showWritten({ store }: Pick<Context, "store">, { id, position, branch }: Written): WrittenNode {
  const row = nodeAt(store, id, position);
  if (row === undefined) throw new Error(`Node ${id} was not there at ${position}.`);
  return { ...showNode(onBranch(store, row, branch, position), pathOf(store, row, position)), position };
}
