/**
 * Restores one node to its state of a moment. A deleted node comes back, a moved node goes back to its place, and
 * content and attributes become those of the moment. The node is compared with its present state, so nothing is done
 * twice. With `plan` nothing is done.
 */
import { type Attributes, sameValue } from "../contract/attributes.ts";
import { joinPath, nameBeside } from "../contract/names.ts";
import type { ChangeKind, RestoredItem } from "../contract/resources.ts";
import { savesOfContent, savesOfLink } from "../contract/saves.ts";
import { formatTime, timeFromMilliseconds } from "../lib/time.ts";
import { type Change, type Content, changeNodeRow, type NodeChange } from "./changes.ts";
import type { Context } from "./context.ts";
import { attributesOf, findChild, findNode, isWithin, type NodeRow, pathOf } from "./node-rows.ts";
import { isRestorable } from "./retention/index.ts";

/** A restoration of a tree, as one of its transactions sees it. */
export interface Restoring {
  readonly context: Context;
  /** Id of the topmost node. */
  readonly root: string;
  /** The moment, as the position of its last change. */
  readonly position: number;
  /** Marks a name that is taken. */
  readonly moment: string;
  readonly exact: boolean;
  readonly plan: boolean;
  /** The change of the transaction, begun when something has to be changed. */
  readonly change: () => Change;
  /** Reports a step that was done, or would be done. */
  readonly onItem: (item: RestoredItem) => void;
  /** Reports the position of the last change. */
  readonly changedAt: (position: number) => void;
  /** True if a node was in the tree then. */
  readonly wasIn: (id: string) => boolean;
}

const NOW = Number.POSITIVE_INFINITY;

/**
 * Puts a node into the folder where it was then. `pathIn`: path of that folder. Returns its name there; undefined when
 * the node cannot come back.
 */
export function restorePlace(
  restoring: Restoring,
  now: NodeRow,
  then: NodeRow,
  parent: string,
  pathIn: string,
): string | undefined {
  const { context, root, plan, onItem } = restoring;
  const { store } = context;
  const isThere = now.deleted === 0 && now.parent === parent;
  if (isThere && now.name === then.name) return now.name;
  const from = pathOf(store, now, NOW);
  if (now.deleted === 1 && !isRestorable(store, now.id)) {
    onItem({ action: "skip", nodeId: now.id, kind: now.kind, path: from, reason: "it is no longer kept" });
    return undefined;
  }
  // In a plan, the folder may still be anywhere.
  if (now.deleted === 0 && isWithin(store, plan ? root : parent, now.id)) {
    const reason = "the folder it was in is below it now";
    onItem({ action: "skip", nodeId: now.id, kind: now.kind, path: from, reason });
    return now.name;
  }
  const name = freeName(restoring, parent, then.name, now.id);
  if (isThere && now.name === name) return name;
  const place = { nodeId: now.id, kind: now.kind, path: joinPath(pathIn, name) };
  if (now.deleted === 1) {
    apply(restoring, now, "restored", { deleted: false, parent, name });
    onItem({ action: "restore", ...place });
  } else {
    apply(restoring, now, "moved", { parent, name });
    onItem({ action: "move", ...place, from });
  }
  return name;
}

/**
 * Returns the name itself when it is free or its node makes way; else a name beside it. A node in the way of the
 * topmost node is outside of the tree, so it never makes way.
 */
function freeName(restoring: Restoring, parent: string, name: string, own: string): string {
  const { context, root, moment, plan, wasIn, exact } = restoring;
  const other = findChild(context.store, parent, name);
  if (other === undefined || other.id === own) return name;
  const beside = (except?: string) =>
    nameBeside(name, `restored ${moment}`, (candidate) => {
      const taken = findChild(context.store, parent, candidate);
      return taken !== undefined && taken.id !== except;
    });
  const wasThere = wasIn(other.id);
  if (own === root || (!wasThere && !exact)) return beside(own);
  // The other node will be moved itself, or deleted: a file at once, a folder once it is empty.
  if (!plan && !wasThere && other.kind === "file") removeNode(restoring, other);
  else if (!plan) apply(restoring, other, "moved", { name: beside() });
  return name;
}

/** Deletes a node that did not exist then. A folder that is not empty stays. */
export function removeNode(restoring: Restoring, now: NodeRow): void {
  const { context, plan, onItem } = restoring;
  const { store } = context;
  const about = { nodeId: now.id, kind: now.kind, path: pathOf(store, now, NOW) };
  const child = store.prepare("SELECT 1 FROM node WHERE parent = ? AND deleted = 0 LIMIT 1");
  if (!plan && child.get(now.id) !== undefined) {
    onItem({ action: "skip", ...about, reason: "the folder is not empty" });
    return;
  }
  apply(restoring, now, "deleted", { deleted: true });
  onItem({ action: "delete", ...about });
}

/** Restores the content and the attributes of the moment. */
export function restoreContent(restoring: Restoring, id: string, then: NodeRow, path: string): void {
  const { context, onItem } = restoring;
  const { store } = context;
  const now = findNode(store, id);
  if (now === undefined) return;
  const about = { nodeId: id, kind: now.kind, path };
  const isOther = now.head !== then.head && now.hash !== then.hash;
  const content = isOther && then.head !== null ? contentOf(context, then.head) : undefined;
  if (isOther && content === undefined) {
    onItem({ action: "skip", ...about, reason: "the version of then is no longer kept" });
    return;
  }
  const before = attributesShown(now);
  const { link, ...own } = before;
  const { link: _, ...wanted } = attributesShown(then);
  if (content === undefined) {
    if (sameValue(own, wanted)) return;
    apply(restoring, now, "changed", { attributes: link === undefined ? wanted : { ...wanted, link } });
    onItem({ action: "attributes", ...about });
    return;
  }
  // The other names of a linked file get the content too: it is the latest save.
  const saves = link === undefined ? [] : savesOfContent(content.hash, savesOfLink(link));
  const attributes = link === undefined ? wanted : { ...wanted, link: { ...link, hash: content.hash, saves } };
  apply(restoring, now, "updated", { attributes, content });
  onItem({ action: "content", ...about });
}

function apply(restoring: Restoring, now: NodeRow, kind: ChangeKind, to: NodeChange): void {
  if (restoring.plan) return;
  restoring.changedAt(changeNodeRow(restoring.context, restoring.change(), now, kind, to));
}

function contentOf({ store }: Context, version: string): Content | undefined {
  return store
    .prepare<Content>("SELECT content, size, hash, mime_type AS mimeType FROM version WHERE id = ? AND content <> 0")
    .get(version);
}

/** Includes the mtime that a file shows: without one of its own it is the time of its version. */
function attributesShown(row: NodeRow): Attributes {
  const own = attributesOf(row);
  if (row.headTime === null) return own;
  return { ...own, mtime: own.mtime ?? formatTime(timeFromMilliseconds(row.headTime)) };
}
