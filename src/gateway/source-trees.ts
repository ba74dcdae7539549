/**
 * A folder with all nodes below it, as the authoritative store has it at one moment. It is read in pieces, between
 * which other requests change it. Nodes changed meanwhile are read again, one by one, until nothing is left to read;
 * that is the moment.
 */
import type { Context } from "./context.ts";
import { lastChange } from "./lag.ts";
import type { NodeRow } from "./node-rows.ts";
import type { Store } from "./store.ts";

/** Nodes read without a pause. */
const SLICE = 250;

export interface SourceNode {
  readonly id: string;
  readonly kind: "file" | "folder";
  readonly parent: string | null;
  readonly name: string;
  /** JSON. */
  readonly attributes: string;
  readonly mimeType: string | null;
  readonly size: number | null;
  readonly hash: string | null;
  readonly content: number | null;
}

const COLUMNS = `n.id, n.kind, n.parent, n.name, n.attributes, n.mime_type AS mimeType, n.size, n.hash, v.content
  FROM node n LEFT JOIN version v ON v.id = n.head`;

/**
 * Returns the nodes, a folder before its content, `source` first. Throws `tooMany` when there are more than `limit`.
 */
export async function readTree(
  { store }: Pick<Context, "store">,
  source: NodeRow,
  limit: number,
  tooMany: () => Error,
): Promise<readonly SourceNode[]> {
  const found = new Map<string, SourceNode>();
  const unread: { readonly folder: string; readonly after: string }[] = [];
  const see = (node: SourceNode) => {
    const isNew = !found.has(node.id);
    found.set(node.id, node);
    if (isNew && node.kind === "folder") unread.push({ folder: node.id, after: "" });
  };
  let { position } = lastChange(store);
  see({ ...source, content: null });
  for (let read = 0; unread.length > 0; ) {
    for (let next = unread.pop(); next !== undefined; next = unread.pop()) {
      const nodes = childrenOf(store, next.folder, next.after);
      for (const node of nodes) see(node);
      const last = nodes.at(-1);
      if (last !== undefined && nodes.length === SLICE) unread.push({ ...next, after: last.name });
      // Nodes that were moved away meanwhile count as well, so only twice the limit is refused here.
      if (found.size > 2 * limit) throw tooMany();
      read += nodes.length;
      if (read < SLICE || unread.length === 0) continue;
      read = 0;
      await pause();
    }
    const changed = changedSince(store, position);
    position = lastChange(store).position;
    for (const id of changed) {
      const node = findSource(store, id);
      if (node !== undefined && (id === source.id || (node.parent !== null && found.has(node.parent)))) see(node);
      // The source itself may be deleted, like any source of a copy.
      else if (id !== source.id) found.delete(id);
    }
  }
  const nodes = reached(found, source.id);
  if (nodes.length > limit) throw tooMany();
  return nodes;
}

/** Undefined: the node is deleted. */
function findSource(store: Store, id: string): SourceNode | undefined {
  return store.prepare<SourceNode>(`SELECT ${COLUMNS} WHERE n.id = ? AND n.deleted = 0`).get(id);
}

function childrenOf(store: Store, folder: string, after: string): SourceNode[] {
  return store
    .prepare<SourceNode>(
      `SELECT ${COLUMNS} WHERE n.parent = ? AND n.name > ? AND n.deleted = 0 ORDER BY n.name LIMIT ${SLICE}`,
    )
    .all(folder, after);
}

function changedSince(store: Store, position: number): ReadonlySet<string> {
  // The query goes by position. The index of nodes would be read as a whole.
  const changed = store.prepare<string>("SELECT node FROM change WHERE position > ? AND +activity = 0").pluck();
  return new Set(changed.all(position));
}

/** Returns the nodes that are below the root now. Nodes below a folder that was moved away or deleted are left out. */
function reached(found: ReadonlyMap<string, SourceNode>, root: string): readonly SourceNode[] {
  const children = new Map<string, SourceNode[]>();
  for (const node of found.values()) {
    if (node.parent === null || node.id === root) continue;
    const siblings = children.get(node.parent);
    if (siblings === undefined) children.set(node.parent, [node]);
    else siblings.push(node);
  }
  const nodes = [...found.values()].filter(({ id }) => id === root);
  // The list grows while it is iterated.
  for (const { id } of nodes) for (const child of children.get(id) ?? []) nodes.push(child);
  return nodes;
}

/** Lets other work run. The clock is not involved. */
export const pause = () => new Promise<void>((resolve) => setImmediate(resolve));
