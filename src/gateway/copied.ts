/**
 * The rows of a large copy besides its nodes. Its row in `copy` says whether its root has its place. `copied` has the
 * nodes without a journal entry. Everything is called within transactions.
 *
 * Invariant: before the root has its place, the other nodes are invisible and can be removed without an entry. After
 * that, each of them gets its entry before any other entry of its own.
 */
import type { Context } from "./context.ts";
import type { Store } from "./store.ts";

type Needs = Pick<Context, "store" | "withNews">;

const SLICE = 250;

export function beginCopy({ store }: Needs, root: string, journaled: boolean): void {
  store.prepare("INSERT INTO copy (root, placed, journaled) VALUES (?, 0, ?)").run(root, Number(journaled));
}

export function copyIsPlaced({ store }: Needs, root: string): void {
  store.prepare("UPDATE copy SET placed = 1 WHERE root = ?").run(root);
}

interface CopyState {
  readonly root: string;
  readonly placed: number;
  readonly journaled: number;
}

/** Undefined: it is finished. */
export function findCopy(store: Store, root: string): CopyState | undefined {
  return store.prepare<CopyState>("SELECT root, placed, journaled FROM copy WHERE root = ?").get(root);
}

export function copiesLeft(store: Store): CopyState[] {
  return store.prepare<CopyState>("SELECT root, placed, journaled FROM copy").all();
}

/** Appends the journal entries of some nodes of a copy that has its place. True if more are left. */
export function tellSome(context: Needs, time: number, root: string): boolean {
  const { store } = context;
  const some = store.prepare<string>("SELECT node FROM copied WHERE root = ? ORDER BY position LIMIT +?").pluck();
  const nodes = some.all(root, SLICE);
  if (findCopy(store, root)?.journaled === 1) tell(context, time, nodes);
  remove(store, nodes);
  if (nodes.length === SLICE) return true;
  store.prepare("DELETE FROM copy WHERE root = ?").run(root);
  return false;
}

/** Called before another entry of a node: the entry of its creation must come first. */
export function tellFirst(context: Needs, time: number, node: string): void {
  const { store } = context;
  const root = store.prepare<string>("SELECT root FROM copied WHERE node = ?").pluck().get(node);
  if (root === undefined) return;
  if (findCopy(store, root)?.journaled === 1) tell(context, time, [node]);
  remove(store, [node]);
}

function remove(store: Store, nodes: readonly string[]): void {
  store.prepare("DELETE FROM copied WHERE node IN (SELECT value FROM json_each(?))").run(JSON.stringify(nodes));
}

/** Appends an entry for each node, as if the change that made it came now. */
function tell({ store, withNews }: Needs, time: number, nodes: readonly string[]): void {
  if (nodes.length === 0) return;
  const refs = JSON.stringify(nodes);
  const counted = store
    .prepare<{ id: string; entries: number }>(
      `UPDATE workspace SET entries = entries + ? WHERE id = (SELECT workspace FROM node WHERE id = ?)
       RETURNING id, entries`,
    )
    .get(nodes.length, nodes[0]);
  if (counted === undefined) throw new Error(`The workspace of ${nodes[0]} is gone.`);
  store
    .prepare(
      `INSERT INTO change (time, workspace, node, kind, activity, entry, revision, parent, name, head, attributes, deleted,
                           key, branch, branch_head, by)
       SELECT :time, c.workspace, c.node, c.kind, 1, :entry + row_number() OVER (ORDER BY c.position), c.revision, c.parent,
              c.name, c.head, '', 0, c.key, c.branch, c.branch_head, c.by
       FROM json_each(:refs) j CROSS JOIN copied x ON x.node = j.value CROSS JOIN change c ON c.position = x.position
       ORDER BY c.position`,
    )
    .run({ time, entry: counted.entries - nodes.length, refs });
  withNews.add(counted.id);
}

/** Removes some nodes of a copy without a place, the last ones first. True if more are left. */
export function dropSome({ store }: Needs, root: string): boolean {
  const nodes = store
    .prepare<string>("SELECT node FROM copied WHERE root = ? ORDER BY position DESC LIMIT +?")
    .pluck()
    .all(root, SLICE);
  const those = "IN (SELECT value FROM json_each(?))";
  const refs = JSON.stringify(nodes);
  store
    .prepare(`DELETE FROM place WHERE (parent, name) IN (SELECT n.parent, n.name FROM node n WHERE n.id ${those})`)
    .run(refs);
  const contents = store.prepare<number>(`SELECT content FROM version WHERE node ${those}`).pluck().all(refs);
  for (const rows of ["mark WHERE folder", "version WHERE node", "node WHERE id"]) {
    store.prepare(`DELETE FROM ${rows} ${those}`).run(refs);
  }
  // The versions of the copied nodes may have been thinned meanwhile, so that these rows were the last users of the
  // content.
  store
    .prepare(
      `DELETE FROM content WHERE id IN (SELECT value FROM json_each(?))
       AND NOT EXISTS (SELECT 1 FROM version WHERE version.content = content.id)`,
    )
    .run(JSON.stringify(contents));
  // The changes of the nodes stay: a position is never used again.
  remove(store, nodes);
  if (nodes.length === SLICE) return true;
  store.prepare("DELETE FROM mark WHERE folder = ?").run(root);
  store.prepare("DELETE FROM copy WHERE root = ?").run(root);
  return false;
}
