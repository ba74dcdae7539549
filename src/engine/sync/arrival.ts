/** Nodes of the gateway that are new here find their place. Runs inside a transaction, never waits. */
import type { Node } from "../../contract/resources.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import { born, type NodeRow } from "../../metadata/nodes.ts";
import { type Context, enqueue, setInodeDirty, setNodeDirty } from "../core/index.ts";
import { isLike } from "../tree/index.ts";
import { undeleteFolder } from "./adopt.ts";
import { gatherNames, inodeApart, isAtNode, joinGroup, lookLater } from "./link-groups.ts";
import { moveToConflictName, moveToTemporaryName, shownNameOf } from "./name-conflicts.ts";
import { plan } from "./plan.ts";
import { isSeenAway } from "./rename-cycles.ts";
import { viewOf } from "./view.ts";

/**
 * A node nobody here has a row of. Placed if its folder is known; else it comes with its folder's
 * listing. The row that left its name for it, and has somewhere else to be, is to be advanced at once.
 */
export function placeArrival(context: Context, node: Node): NodeRowId | undefined {
  const { metadata } = context;
  // A folder that was removed here, its deletion not sent: something new in it keeps it.
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
  // What was changed here in its other names is to be sent to it too.
  if (joined !== undefined && !isAtNode(context, inode)) {
    if (isGathered) setInodeDirty(context, inode.id);
    else setNodeDirty(context, row);
  }
  // One that is newer has just given the file its content.
  else if (isGathered || inode.originNode === node.id || !isLike(inode, node)) lookLater(context, inode.id);
  return occupant === undefined ? undefined : metadata.nodes.ofEntry(occupant.id)?.id;
}

/** Whether the name is free now. An entry the gateway does not have there steps aside, or decides later. */
function makeWay(context: Context, occupant: Entry, node: Node): boolean {
  const { metadata } = context;
  const row = metadata.nodes.ofEntry(occupant.id);
  if (row === undefined) return false;
  // One that has waited already has woken whom it waits for; each look of the loop tries it again.
  const isNew = metadata.arrivals.get(node.id)?.revision !== node.revision;
  if (row.nodeId === null) {
    // Whether it is the same thing is known when its own request is answered or refused; see settle.ts.
    if (isNew) enqueue(context, row);
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
    // Two nodes cannot have one name: what is known of the other is old.
    if (isNew) metadata.rereads.add(row.nodeId);
    if (isNew) context.activity.wake();
    return false;
  }
  // Moved here by a program, while the gateway gave the name to another: the remote place wins.
  moveToConflictName(context, occupant);
  return true;
}

/** It cannot be sent, nobody knows for how long: what is in a folder that waits for its name may be what takes the room. */
function isHeldBack(context: Context, row: NodeRow): boolean {
  const step = plan(viewOf(context, row));
  return step.do === "wait" && (step.for === "quota" || step.for === "scope");
}
