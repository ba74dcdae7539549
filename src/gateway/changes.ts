/**
 * The writer of nodes and their history. Every change is a row of `change`, updates `node`, and keeps `place` (what the
 * path index will show) in step. Called within a transaction. There are three other writers: `tree-rows.ts` makes the
 * rows of many new nodes at once, `copied.ts` writes the entries of a staged copy or removes its nodes, and
 * `retention/prune.ts` marks nodes that cannot be restored.
 *
 * Invariant: a folder has a place exactly when it is provisioned, a file always. The place at position P is what `node`
 * said at P.
 */
import type { Attributes } from "../contract/attributes.ts";
import type { Author, ChangeKind } from "../contract/resources.ts";
import { keptState } from "./attribute-states.ts";
import type { Context } from "./context.ts";
import { tellFirst } from "./copied.ts";
import { lastChange } from "./lag.ts";
import { findNode, MAIN, type NodeRow } from "./node-rows.ts";
import { beginPlace, endPlace, forgetMarks } from "./places.ts";
import { addUsed, headSize, headSizes, requireQuota } from "./quota.ts";
import { requireRestorable, THINNED_CONTENT } from "./retention/index.ts";
import type { Store } from "./store.ts";

export interface Content {
  readonly size: number;
  readonly hash: string;
  readonly mimeType: string;
  /** Row of `content`. */
  readonly content: number;
}

/** The common part of all changes of one request. */
export interface Change {
  readonly time: number;
  readonly key: string | null;
  /** JSON of its Author. Null: there is none, or it is unknown. */
  readonly by: string | null;
  /** True if journal entries are appended. */
  readonly journaled: boolean;
}

/**
 * Called once in a transaction. Times never go back along positions, whatever the clock does (`positionAt` relies on
 * it).
 */
export function beginChange(
  context: Context,
  {
    by,
    key,
    journaled = true,
  }: { readonly by: Author | null; readonly key?: string | null | undefined; readonly journaled?: boolean },
): Change {
  const last = lastChange(context.store);
  context.pathLag.begin(last.position);
  context.journalLag.begin(last.position);
  return {
    time: Math.max(Math.floor(context.clock.wallClock()), last.time),
    key: key ?? null,
    by: by === null ? null : JSON.stringify(by),
    journaled,
  };
}

interface State {
  readonly revision: number;
  readonly parent: string | null;
  readonly name: string;
  readonly head: string | null;
  /** The part of the attributes that is kept (attribute-states.ts). */
  readonly attributes: string;
  readonly deleted: number;
  /** The branch whose head the change moved, and its new version. */
  readonly branch?: string | undefined;
  readonly branchHead?: string | undefined;
}

function append(
  context: Pick<Context, "store" | "withNews">,
  change: Change,
  node: { id: string; workspace: string },
  kind: string,
  activity: 0 | 1,
  state: State,
  /** Bytes by which the workspace grows. */
  growth = 0,
): number {
  const { store, withNews } = context;
  tellFirst(context, change.time, node.id);
  if (change.journaled) withNews.add(node.workspace);
  const entry = change.journaled ? nextEntry(store, node.workspace, growth) : null;
  if (!change.journaled && growth !== 0) addUsed(store, node.workspace, growth);
  const { lastInsertRowid } = store
    .prepare(
      `INSERT INTO change (time, workspace, node, kind, activity, entry, revision, parent, name, head, attributes, deleted, key,
                           branch, branch_head, by)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      change.time,
      node.workspace,
      node.id,
      kind,
      activity,
      entry,
      state.revision,
      state.parent,
      state.name,
      state.head,
      state.attributes,
      state.deleted,
      change.key,
      state.branch ?? null,
      state.branchHead ?? null,
      change.by,
    );
  return Number(lastInsertRowid);
}

/** Raises both numbers of the workspace in one statement. */
function nextEntry(store: Store, workspace: string, growth: number): number {
  const row = store
    .prepare<{ entries: number }>(
      "UPDATE workspace SET entries = entries + 1, used = used + ? WHERE id = ? RETURNING entries",
    )
    .get(growth, workspace);
  if (row === undefined) throw new Error(`Workspace ${workspace} is gone.`);
  return row.entries;
}

interface NewNodeRow {
  readonly workspace: string;
  readonly kind: "file" | "folder";
  readonly parent: string | null;
  readonly name: string;
  readonly attributes: Attributes;
  readonly content?: Content;
  /** Absent: a new id is made. */
  readonly id?: string;
}

/** Makes a new node. Returns its id and the position of the change. */
export function createNodeRow(
  context: Context,
  change: Change,
  node: NewNodeRow,
): { readonly id: string; readonly position: number } {
  const { store, newId } = context;
  requireQuota(context, node.workspace, node.content?.size ?? 0);
  const { id = newId() } = node;
  const head = node.content === undefined ? null : newId();
  const attributes = JSON.stringify(node.attributes);
  const state: State = {
    revision: 1,
    parent: node.parent,
    name: node.name,
    head,
    attributes,
    deleted: 0,
    ...(head === null ? {} : { branch: MAIN, branchHead: head }),
  };
  const owner = { id, workspace: node.workspace };
  const position = append(context, change, owner, "created", 0, state, node.content?.size);
  const provisioned = node.kind === "file" || change.journaled ? 1 : 0;
  store
    .prepare(
      `INSERT INTO node (id, workspace, kind, parent, name, deleted, provisioned, position, versions, created_at,
                         revision, head, attributes, key, mime_type, size, hash, head_time)
       VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      id,
      node.workspace,
      node.kind,
      node.parent,
      node.name,
      provisioned,
      position,
      head === null ? 0 : 1,
      change.time,
      head,
      attributes,
      change.key,
      node.content?.mimeType ?? null,
      node.content?.size ?? null,
      node.content?.hash ?? null,
      head === null ? null : change.time,
    );
  if (node.content !== undefined && head !== null) {
    addVersion(store, change, id, MAIN, head, 1, position, node.content);
  }
  if (provisioned === 1 && node.parent !== null) {
    beginPlace(store, node.parent, { name: node.name, node: id, createdAt: change.time }, position);
  }
  context.births.note(id);
  return { id, position };
}

function addVersion(
  store: Store,
  change: Change,
  node: string,
  branch: string,
  id: string,
  number: number,
  position: number,
  content: Content,
  mtime?: string,
): void {
  store
    .prepare(
      `INSERT INTO version (id, node, number, branch, position, content, size, hash, mime_type, created_at, mtime)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      id,
      node,
      number,
      branch,
      position,
      content.content,
      content.size,
      content.hash,
      content.mimeType,
      change.time,
      mtime ?? null,
    );
}

export interface NodeChange {
  readonly parent?: string;
  readonly name?: string;
  readonly attributes?: Attributes;
  readonly content?: Content;
  /**
   * The branch whose head becomes `content`, and the mtime of that version. Default: main, whose mtime is an attribute.
   */
  readonly branch?: { readonly name: string; readonly mtime: string | undefined };
  readonly deleted?: boolean;
}

function growthOf(store: Store, row: NodeRow, to: NodeChange): number {
  if (to.content !== undefined) return to.content.size - headSize(store, row, to.branch?.name);
  if (to.deleted === undefined || Number(to.deleted) === row.deleted) return 0;
  return to.deleted ? -headSizes(store, row) : headSizes(store, row);
}

/** Changes an existing node once. Returns the position. */
export function changeNodeRow(
  context: Context,
  change: Change,
  row: NodeRow,
  kind: ChangeKind,
  to: NodeChange,
): number {
  return changeNodeRows(context, change, [{ row, kind, to }]);
}

/** Changes several nodes at once, so that two nodes can take each other's place. Returns the last position. */
export function changeNodeRows(
  context: Context,
  change: Change,
  steps: readonly { readonly row: NodeRow; readonly kind: ChangeKind; readonly to: NodeChange }[],
): number {
  const { store, newId } = context;
  const done = steps.map(({ row, kind, to }) => {
    if (to.deleted === false) requireRestorable(store, row.id);
    if (to.content?.content === THINNED_CONTENT)
      throw new Error(`Content that was thinned cannot become a version of ${row.id}.`);
    const growth = growthOf(store, row, to);
    requireQuota(context, row.workspace, growth);
    const version = to.content === undefined ? undefined : newId();
    const content = to.branch === undefined ? to.content : undefined;
    const revision = row.revision + 1;
    const attributes = to.attributes === undefined ? row.attributes : JSON.stringify(to.attributes);
    const state: State = {
      revision,
      parent: to.parent ?? row.parent,
      name: to.name ?? row.name,
      head: content === undefined ? row.head : (version ?? null),
      attributes: keptState(row.attributes, attributes, revision),
      deleted: to.deleted === undefined ? row.deleted : Number(to.deleted),
      ...(version === undefined ? {} : { branch: to.branch?.name ?? MAIN, branchHead: version }),
    };
    const position = append(context, change, row, kind, 0, state, growth);
    if (to.content !== undefined && version !== undefined) {
      const { name, mtime } = to.branch ?? { name: MAIN, mtime: undefined };
      addVersion(store, change, row.id, name, version, row.versions + 1, position, to.content, mtime);
    }
    const moved = state.parent !== row.parent || state.name !== row.name || state.deleted !== row.deleted;
    // Any journal entry that names a folder provisions it.
    const provisioned = row.provisioned === 1 || change.journaled ? 1 : 0;
    const replaced = moved || provisioned !== row.provisioned;
    if (replaced) {
      if (row.parent !== null && row.provisioned === 1 && row.deleted === 0) {
        endPlace(store, row.parent, placeOf(row, row.name), position);
      }
      // Frees the names until every node of the request has left its old name.
      store.prepare("UPDATE node SET deleted = 1 WHERE id = ?").run(row.id);
    }
    return { row, to, content, state, attributes, position, provisioned, replaced };
  });
  for (const { row, to, content, state, attributes, position, provisioned, replaced } of done) {
    store
      .prepare(
        `UPDATE node SET parent = ?, name = ?, deleted = ?, provisioned = ?, position = ?, versions = ?, revision = ?,
           head = ?, attributes = ?, key = ?, mime_type = ?, size = ?, hash = ?, head_time = ? WHERE id = ?`,
      )
      .run(
        state.parent,
        state.name,
        state.deleted,
        provisioned,
        position,
        row.versions + (to.content === undefined ? 0 : 1),
        state.revision,
        state.head,
        attributes,
        change.key,
        content === undefined ? row.mimeType : content.mimeType,
        content === undefined ? row.size : content.size,
        content === undefined ? row.hash : content.hash,
        content === undefined ? row.headTime : change.time,
        row.id,
      );
    if (replaced && provisioned === 1 && state.deleted === 0 && state.parent !== null) {
      beginPlace(store, state.parent, placeOf(row, state.name), position);
    }
    if (state.deleted === 1) forgetMarks(store, row.id);
  }
  return done.at(-1)?.position ?? lastChange(store).position;
}

const placeOf = (row: NodeRow, name: string) => ({ name, node: row.id, createdAt: row.createdAt });

/** Appends a journal entry of a caller. The node stays as it is; an unprovisioned folder is provisioned. */
export function recordActivity(context: Context, change: Change, row: NodeRow, kind: string): number {
  const { store } = context;
  const position = append(context, change, row, kind, 1, { ...row, attributes: "" });
  if (row.provisioned === 0) {
    store.prepare("UPDATE node SET provisioned = 1 WHERE id = ?").run(row.id);
    if (row.parent !== null) beginPlace(store, row.parent, placeOf(row, row.name), position);
  }
  return position;
}

/** The row after an earlier step of the same transaction. */
export function reread(context: Context, id: string): NodeRow {
  const row = findNode(context.store, id);
  if (row === undefined) throw new Error(`Node ${id} is gone.`);
  return row;
}
