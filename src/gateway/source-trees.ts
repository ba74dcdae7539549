/**
 * A folder with all below it, as the authoritative store has it at one moment: read in pieces, between which others change
 * it. What they changed meanwhile is looked at again, node by node, until nothing is left to be read; that is the moment.
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

/** The nodes, a folder before what is in it, `source` first. `tooMany` is thrown where there are more than `limit`. */
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
      // What has been moved away since counts as well; twice as many are not there for long.
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
      // What is copied may be deleted, as any source of a copy.
      else if (id !== source.id) found.delete(id);
    }
  }
  const nodes = reached(found, source.id);
  if (nodes.length > limit) throw tooMany();
  return nodes;
}

/** Undefined: it is deleted. */
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
  // By position, not by the index of nodes, which would be read whole.
  const changed = store.prepare<string>("SELECT node FROM change WHERE position > ? AND +activity = 0").pluck();
  return new Set(changed.all(position));
}

/** Those that are below the root by now; what was below a folder that went away is not. */
function reached(found: ReadonlyMap<string, SourceNode>, root: string): readonly SourceNode[] {
  const children = new Map<string, SourceNode[]>();
  for (const node of found.values()) {
    if (node.parent === null || node.id === root) continue;
    const siblings = children.get(node.parent);
    if (siblings === undefined) children.set(node.parent, [node]);
    else siblings.push(node);
  }
  const nodes = [...found.values()].filter(({ id }) => id === root);
  // It grows while it is gone through.
  for (const { id } of nodes) for (const child of children.get(id) ?? []) nodes.push(child);
  return nodes;
}

/** Lets others run; the clock plays no part in it. */
export const pause = () => new Promise<void>((resolve) => setImmediate(resolve));
