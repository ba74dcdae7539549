/**
 * Observes nodes that were read together, in one transaction. First the news of each is stored. Then the nodes that
 * moved change places: all leave their names, and each takes its new one. So chains and cycles of renames show no gap,
 * no rename cycle and no conflict. Never waits.
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
 * If the process dies before a noted node is observed, the write-back loop comes to it after this time. It is longer
 * than the shortest link lease, because other mounts go first (link-groups.ts).
 */
const UNOBSERVED_MS = 90_000;

/**
 * Call Observer.node for each node afterwards: after an error here, that does the work one node at a time. Never call
 * this within a transaction, because an error must roll back this step alone.
 */
export function observeTogether(context: Rows & Host & Tree & Sync, nodes: Iterable<Node>, source: Source): void {
  const { metadata } = context;
  try {
    metadata.transaction(() => {
      const moved: NodeRow[] = [];
      for (const one of nodes) {
        const row = note(context, one, source);
        if (row !== undefined && isMoved(context, row)) moved.push(row);
      }
      const leaving = moved.filter((row) => isAdoptable(context, row));
      if (leaving.length > 1) moveTogether(context, leaving);
    });
  } catch (error) {
    context.log.error({ err: error }, "changes read together could not be applied together");
  }
}

/**
 * Stores the news of one node and returns its row; undefined if there is no news. A node that may be an own write is
 * left to its observation.
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

/** True: the node moved to a folder that is known. Other moves are found when the node is observed. */
function isMoved(context: Tree, { entry, seen, base }: NodeRow): boolean {
  if (entry === null || seen === null || "deleted" in seen || seen.node.parentId === null) return false;
  if (seen.node.parentId === base?.parent && seen.node.name === base.name) return false;
  return context.nodeRows.folderOfNode(seen.node.parentId) !== undefined;
}

/**
 * True: the new place can be adopted now. If not, another step comes first. A conflict copy, for example, belongs
 * beside the file, at the place that it still has.
 */
function isAdoptable(context: Sync, row: NodeRow): boolean {
  const step = context.planner.step(row);
  return step.do === "adopt" || step.do === "adoptPlace";
}

function moveTogether(context: Rows & Tree & Sync, rows: readonly NodeRow[]): void {
  const { entries } = context.metadata;
  const left = rows.flatMap((row) => (row.entry === null ? [] : (entries.get(row.entry) ?? [])));
  // No program can use such a name, so no path leads to the entry meanwhile.
  for (const { id, name, gatewayName } of left) entries.move(id, ROOT_INODE, `/${id}`, gatewayName ?? name);
  for (const row of rows) context.planner.advance(row.id);
  for (const entry of left) putBack(context, entry);
}

/** An entry that cannot take its new place yet goes back to its old one, if that is possible. */
function putBack(context: Rows & Tree & Sync, { id, parent, name, gatewayName, inode }: Entry): void {
  const { entries } = context.metadata;
  const now = entries.get(id);
  if (now === undefined || now.parent !== ROOT_INODE || now.name !== `/${id}`) return;
  // The folder where it was has moved into it. Back there, neither would be in the tree.
  if (context.nodeRows.isInside(parent, inode)) context.conflictNames.moveTo(now);
  else if (entries.find(parent, name) === undefined) entries.move(id, parent, name, gatewayName);
  else context.conflictNames.moveToTemporary({ ...now, parent });
}
