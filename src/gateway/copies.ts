/**
 * A folder copied with all below it: read in pieces, so that other requests are answered in
 * between, and written in one transaction, so that readers see all of the copy or nothing.
 *
 * One transaction, because positions are one sequence that is shown in order: rows committed piece
 * by piece would be seen piece by piece, or hold back every other change until the last of them. It
 * takes about 30 µs a node, in which nobody else is answered; hence the limit.
 *
 * The authoritative store is what is copied, as it is at the moment of the effect: a plan made
 * before is thrown away when anything of the tree has changed since.
 */
import type { Attributes } from "../contract/attributes.ts";
import type { Context } from "./context.ts";
import { lastChange } from "./lag.ts";
import { attributesOf, type NodeRow } from "./node-rows.ts";
import { conflict, tooLarge } from "./problems.ts";
import type { Store } from "./store.ts";
import type { NewTreeRow } from "./tree-rows.ts";

/** Nodes of one copy: what is written in one go, and held in memory for it. */
export const COPY_NODES_MAX = 10_000;
/** Nodes read without a pause. */
const SLICE = 500;
/** A tree that keeps changing is read without pauses in the end. */
const ATTEMPTS = 4;

export interface CopyPlan {
  readonly source: string;
  /** What the tree was read at, at least. */
  readonly position: number;
  /** Of the store, when it was read. */
  readonly rollbacks: number;
  readonly ids: ReadonlySet<string>;
  /** The copy's own rows, the root first; its parent, name and attributes are the request's. */
  readonly rows: readonly NewTreeRow[];
}

/** Thrown by an effect that needs a plan of this folder, a new one where it had one. */
export class PlanNeeded extends Error {
  readonly source: NodeRow;

  constructor(source: NodeRow) {
    super(`Folder ${source.id} is to be read first.`);
    this.name = "PlanNeeded";
    this.source = source;
  }
}

/** Runs an effect until it has the plan it needs. */
export async function withPlan<T>(context: Context, effect: (plan: CopyPlan | undefined) => T): Promise<T> {
  let plan: CopyPlan | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return effect(plan);
    } catch (error) {
      if (!(error instanceof PlanNeeded)) throw error;
      if (attempt > ATTEMPTS) throw conflict("The folder keeps changing while it is read; try again.");
      plan = await readTree(context, error.source, attempt < ATTEMPTS);
    }
  }
}

/** Within the transaction of the effect: whether the tree is still what was read. */
export function isCurrent(store: Store, plan: CopyPlan): boolean {
  if (plan.rollbacks !== store.rollbacks()) return false;
  const changes = store
    .prepare<{ node: string; parent: string | null }>(
      "SELECT node, parent FROM change WHERE position > ? AND activity = 0",
    )
    .all(plan.position);
  return !changes.some(({ node, parent }) => plan.ids.has(node) || (parent !== null && plan.ids.has(parent)));
}

interface TreeNode {
  readonly id: string;
  readonly kind: "file" | "folder";
  readonly name: string;
  readonly attributes: string;
  readonly mimeType: string | null;
  readonly size: number | null;
  readonly hash: string | null;
  readonly content: number | null;
}

async function readTree({ store, newId }: Context, source: NodeRow, pauses: boolean): Promise<CopyPlan> {
  const { position } = lastChange(store);
  const rollbacks = store.rollbacks();
  const children = store.prepare<TreeNode>(
    `SELECT n.id, n.kind, n.name, n.attributes, n.mime_type AS mimeType, n.size, n.hash, v.content
     FROM node n LEFT JOIN version v ON v.id = n.head WHERE n.parent = ? AND n.name > ? AND n.deleted = 0
     ORDER BY n.name LIMIT ${SLICE}`,
  );
  const root: NewTreeRow = {
    id: newId(),
    kind: "folder",
    parent: "",
    name: "",
    attributes: ownAttributes(source),
    content: undefined,
    head: null,
  };
  const rows: NewTreeRow[] = [root];
  const ids = new Set<string>([source.id]);
  const folders: { readonly from: string; readonly to: string; readonly after: string }[] = [
    { from: source.id, to: root.id, after: "" },
  ];
  let read = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const found = children.all(folder.from, folder.after);
    const last = found.at(-1);
    if (last !== undefined && found.length === SLICE) folders.push({ ...folder, after: last.name });
    for (const node of found) {
      if (rows.length >= COPY_NODES_MAX) {
        throw tooLarge(`copyOf: the folder holds more than ${COPY_NODES_MAX - 1} nodes; copy its parts`, "copyOf");
      }
      const { content, size, hash, mimeType } = node;
      const id = newId();
      ids.add(node.id);
      rows.push({
        id,
        kind: node.kind,
        parent: folder.to,
        name: node.name,
        attributes: ownAttributes(node),
        head: node.kind === "file" ? newId() : null,
        content:
          content === null || size === null || hash === null || mimeType === null
            ? undefined
            : { content, size, hash, mimeType },
      });
      if (node.kind === "folder") folders.push({ from: node.id, to: id, after: "" });
    }
    if (!pauses || rows.length - read < SLICE) continue;
    read = rows.length;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return { source: source.id, position, rollbacks, ids, rows };
}

/** A link belongs to the node it was made for. */
function ownAttributes(node: Pick<NodeRow, "attributes">): Attributes {
  const { link: _, ...attributes } = attributesOf(node);
  return attributes;
}
