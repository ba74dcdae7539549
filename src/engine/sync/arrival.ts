/** Gives nodes that are new here their place. Runs inside a transaction, never waits. */
import type { Node } from "../../contract/resources.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import { born, type NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import { isLike, type Tree } from "../tree/index.ts";
import { undeleteFolder } from "./adopt.ts";
import { gatherNames, inodeApart, isAtNode, joinGroup, lookLater } from "./link-groups.ts";
import { moveToConflictName, moveToTemporaryName, shownNameOf } from "./name-conflicts.ts";
import { plan } from "./plan.ts";
import { isSeenAway } from "./rename-cycles.ts";
import { viewOf } from "./view.ts";

/**
 * Places a node that has no row here, if its folder is known. If the folder is not known, the node comes with the
 * folder's listing. Returns the row that left its name for the node and has another place to go to: advance it at once.
 */
export function placeArrival(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  node: Node,
): NodeRowId | undefined {
  const { metadata } = context;
  // If a program removed the folder here and its deletion is not sent yet, the new node in it keeps the folder.
  const folder = node.parentId === null ? undefined : undeleteFolder(context, node.parentId);
  if (folder === undefined) {
    metadata.arrivals.remove(node.id);
    return undefined;
  }
  const shown = shownNameOf(context, node.id, node.name);
  const occupant = metadata.entries.find(folder, shown.name);
  if (occupant !== undefined && !makeWay(context, occupant, node)) {
    metadata.arrivals.add(node);
    return undefined;
  }
  metadata.arrivals.remove(node.id);
  const joined = joinGroup(context, node);
  const own = joined ?? inodeApart(context, node);
  const entry = metadata.entries.create(folder, shown.name, own.id, shown.gatewayName);
  const row = metadata.nodes.create({ ...born(entry.id, node), changedAt: context.runtime.now() });
  const gathered = gatherNames(context, own);
  const isGathered = gathered !== undefined;
  const inode = gathered ?? own;
  // A change under the inode's other names was made here, and is to be sent to this node too.
  if (joined !== undefined && !isAtNode(context, inode)) {
    if (isGathered) context.queue.setInodeDirty(inode.id);
    else context.queue.setNodeDirty(row);
  }
  // This mount did not change the file. If the file does not show this node's content, a link lease begins: another
  // mount is expected to bring the node up to date.
  else if (isGathered || inode.originNode === node.id || !isLike(inode, node)) lookLater(context, inode.id);
  return occupant === undefined ? undefined : metadata.nodes.ofEntry(occupant.id)?.id;
}

/**
 * Frees the name if possible, and returns whether it is free. An entry that the gateway does not have at this place
 * moves aside, or its own request decides later.
 */
function makeWay(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, occupant: Entry, node: Node): boolean {
  const { metadata } = context;
  const row = metadata.nodes.ofEntry(occupant.id);
  if (row === undefined) return false;
  // False: the node has waited before, and has already woken the row that it waits for. Each look of the loop tries it
  // again.
  const isNew = metadata.arrivals.get(node.id)?.revision !== node.revision;
  if (row.nodeId === null) {
    // The answer to the row's own request tells whether the two are the same node (acknowledge.ts).
    if (isNew) context.queue.enqueue(row);
    if (row.kind === node.kind || !isHeldBack(context, row)) return false;
    moveToConflictName(context, occupant);
    metadata.afterCommit(context.activity.conflicted);
    return true;
  }
  if (isSeenAway(row)) {
    moveToTemporaryName(context, occupant);
    return true;
  }
  if (row.base?.parent === node.parentId && row.base.name === node.name) {
    // Two nodes cannot have one name, so the row of the other node is out of date.
    if (isNew) metadata.rereads.add(row.nodeId);
    if (isNew) context.activity.wake();
    return false;
  }
  // A program moved the entry here while the gateway gave the name to another node. The remote place wins.
  moveToConflictName(context, occupant);
  return true;
}

/**
 * True: the row cannot be sent for an unknown time, so it must not hold the name. Example: it waits for room, and that
 * room is taken by the files of a folder that waits for this name.
 */
function isHeldBack(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, row: NodeRow): boolean {
  const step = plan(viewOf(context, row));
  return step.do === "wait" && (step.for === "quota" || step.for === "scope");
}
