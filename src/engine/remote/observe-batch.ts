/**
 * Observes several nodes that were read together. First, what is new of each is stored. Then the nodes that moved
 * change places at once: all leave their names, and each takes its new one. So chains and cycles of renames show no
 * gap, no rename cycle and no conflict. Never waits.
 */
import type { Node } from "../../contract/resources.ts";
import { plus } from "../../lib/clocks.ts";
import type { Entry } from "../../metadata/entries.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { isAfterBase, isAfterSeen, type NodeRow } from "../../metadata/nodes.ts";
import type { Host, Rows } from "../core/index.ts";
import type { Source, Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";

/**
 * If the process dies before a noted node is observed, the loop comes to it after this. Not sooner: others may come
 * first (link-groups.ts).
 */
const UNOBSERVED_MS = 90_000;

/**
 * To be followed by Observer.node for each node: what an error prevented here is done there, one node at a time. Not to
 * be called within a transaction, because what an error interrupts must be rolled back.
 */
export function observeTogether(context: Rows & Host & Tree & Sync, told: Iterable<Node>, source: Source): void {
  const { metadata } = context;
  try {
    metadata.transaction(() => {
      const moved: NodeRow[] = [];
      for (const one of told) {
        const row = note(context, one, source);
        if (row !== undefined && isMoved(context, row)) moved.push(row);
      }
      const leaving = moved.filter((row) => isTaken(context, row));
      if (leaving.length > 1) moveTogether(context, leaving);
    });
  } catch (error) {
    context.log.error({ err: error }, "changes read together could not be applied together");
  }
}

/**
 * Stores the news of one node and returns its row, if there is news. Whether it is an effect of our own requests is
 * decided when it is observed.
 */
function note(context: Rows & Host & Sync, told: Node, source: Source): NodeRow | undefined {
  const { metadata } = context;
  const row = metadata.nodes.ofNodeId(told.id);
  if (row === undefined || (told.lastKey !== null && metadata.attempts.ofKey(told.lastKey) !== undefined)) return;
  const node = context.observer.withRevision(told, source);
  if (node === undefined || !isAfterBase(row, node.revision) || !isAfterSeen(row, node.revision)) return;
  if (context.observer.keyOfContent(row, node) !== undefined) return;
  const now = context.runtime.now();
  return metadata.nodes.update(row.id, { seen: { node }, seenAt: now, due: row.due ?? plus(now, UNOBSERVED_MS) });
}

/** The node moved to a folder that is known. Moves to other places are found when the node is observed. */
function isMoved(context: Tree, { entry, seen, base }: NodeRow): boolean {
  if (entry === null || seen === null || "deleted" in seen || seen.node.parentId === null) return false;
  if (seen.node.parentId === base?.parent && seen.node.name === base.name) return false;
  return context.nodeRows.folderOfNode(seen.node.parentId) !== undefined;
}

/**
 * Its place can be adopted now. If not, other news comes first: what is kept of that belongs beside the file, where it
 * still is.
 */
function isTaken(context: Sync, row: NodeRow): boolean {
  const step = context.planner.step(row);
  return step.do === "adopt" || step.do === "adoptPlace";
}

function moveTogether(context: Rows & Tree & Sync, rows: readonly NodeRow[]): void {
  const { entries } = context.metadata;
  const left = rows.flatMap((row) => (row.entry === null ? [] : (entries.get(row.entry) ?? [])));
  // A name that no program can use, so no path leads to the entry meanwhile.
  for (const { id, name, gatewayName } of left) entries.move(id, ROOT_INODE, `/${id}`, gatewayName ?? name);
  for (const row of rows) context.planner.advance(row.id);
  for (const entry of left) putBack(context, entry);
}

/** An entry that cannot take its new place yet waits where it was, if it still can. */
function putBack(context: Rows & Tree & Sync, { id, parent, name, gatewayName, inode }: Entry): void {
  const { entries } = context.metadata;
  const now = entries.get(id);
  if (now === undefined || now.parent !== ROOT_INODE || now.name !== `/${id}`) return;
  // The folder where it was has moved into it: put back, neither would be in the tree.
  if (context.nodeRows.isInside(parent, inode)) context.conflictNames.moveTo(now);
  else if (entries.find(parent, name) === undefined) entries.move(id, parent, name, gatewayName);
  else context.conflictNames.moveToTemporary({ ...now, parent });
}
