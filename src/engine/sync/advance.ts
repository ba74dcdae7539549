/**
 * Takes one node row towards agreement, as far as that is possible without network and without waiting. Asks the plan,
 * carries out the steps on this disk, and returns the first step that needs more.
 */
import { laterOf, millisecondsOf, minus, plus } from "../../lib/clocks.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { baseOf } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { adoptNode, adoptPlace, undeleteFolder } from "./adopt.ts";
import { keepCopy } from "./conflict-copy.ts";
import { agreeOnContent } from "./content-agreed.ts";
import { detachFromName } from "./detached-files.ts";
import { vacateState } from "./echo.ts";
import { groupOf } from "./from-node.ts";
import { inodeApart, joinGroup, keepLinkLease, leaveGroup, lookLater } from "./link-groups.ts";
import { moveBack, moveToConflictName, shownNameOf } from "./name-conflicts.ts";
import { plan, type Step } from "./plan.ts";
import { viewOf } from "./view.ts";

/** No node needs more local steps in a row than this. More are a bug of the plan. */
const STEPS_MAX = 20;
/**
 * The event that a row waits for wakes the row. This recheck is for events that no flow reports. It comes after ten
 * seconds at first, then less and less often, but at least every five minutes.
 */
const RECHECK_MS = 10_000;
const RECHECK_MAX_MS = 5 * 60_000;
/** The pause before the plan looks again at a row that does not fit the gateway's answers. Its node is read then. */
export const LOOK_AGAIN_MS = 1_000;

/** The rest of the work on a row after its local steps: `step` needs the network, a snapshot or time. */
export interface Pending {
  readonly row: NodeRow;
  readonly step: Extract<Step, { do: "send" | "snapshot" | "breakCycle" | "wait" }>;
}

/**
 * Advances the row. Returns undefined if nothing is left to do. An entry that leaves its name for this row goes to its
 * own place in the same transaction. Throws an Error if the steps of the plan do not end, which is a bug of the plan.
 */
export function advance(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  id: NodeRowId,
): Pending | undefined {
  return context.metadata.transaction(() => {
    const aside: NodeRowId[] = [];
    const pending = advanceOne(context, id, aside);
    // The list grows while chains and cycles of names are followed.
    for (const next of aside) advanceOne(context, next, aside);
    return pending;
  });
}

function advanceOne(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  id: NodeRowId,
  aside: NodeRowId[],
): Pending | undefined {
  const { metadata } = context;
  for (let count = 0; count < STEPS_MAX; count += 1) {
    const row = metadata.nodes.get(id);
    if (row === undefined) return undefined;
    const step = plan(viewOf(context, row));
    switch (step.do) {
      case "nothing":
        takeNameBack(context, row);
        if (row.dirtySince !== null || row.due !== null) {
          agreeOnContent(context, row);
          metadata.nodes.update(id, { dirtySince: null, due: null, parked: null });
          context.activity.progressed();
        }
        return undefined;
      case "forget":
        forgetRow(context, row);
        return undefined;
      case "adopt":
      case "adoptPlace":
      case "undelete":
      case "removeLocal":
      case "recreate":
      case "conflict":
        // After a rollback of the gateway, the content that the gateway has lost must be kept first.
        if (context.timeline.isRolledBack() && isAtCostOfContent(step)) return waitForRefresh(context, row);
        if (!carryOut(context, row, step, aside)) return waitForRefresh(context, row);
        context.activity.progressed();
        break;
      case "wait": {
        if (step.for === "names") {
          const isOver = row.due !== null && row.due <= context.runtime.now();
          if (!isOver) return undefined;
          context.queue.setNodeDirty(row);
          break;
        }
        if (step.for === "name") context.names.askForUndeletable(row);
        if (step.for === "name" || step.for === "reference") askForDeletion(context, row);
        if (step.for === "quota") context.quota.holds();
        if (step.for === "look") lookAndAdvance(context, row);
        const due = plus(context.runtime.now(), recheckAfter(context, row, step));
        return { row: metadata.nodes.update(id, { due }), step };
      }
      case "send":
      case "snapshot":
      case "breakCycle":
        if (row.due !== null) return { row, step };
        return { row: metadata.nodes.update(id, { due: context.runtime.now() }), step };
    }
  }
  throw new Error(`the steps of the plan for node row ${id} do not end`);
}

/**
 * The node was about to leave its name for another one, and came back to it. Its entry does so too, when the name is
 * free: until then two nodes seem to have one name, and what leaves the place wakes this row (leftPlace).
 */
function takeNameBack(context: Rows & Uploads & Host, { entry: id, base }: NodeRow): void {
  const { entries } = context.metadata;
  const entry = id === null ? undefined : entries.get(id);
  if (entry === undefined || base === null || entry.name !== `/${entry.id}`) return;
  if (entries.find(entry.parent, base.name) === undefined) moveBack(context, entry);
}

const isAtCostOfContent = (step: Step) => step.do === "removeLocal" || (step.do === "adopt" && step.isContentAdopted);

/** After the commit, looks for writes to the file, and advances the row in the same turn of the thread. */
function lookAndAdvance(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, row: NodeRow): void {
  const inode = context.nodeRows.inodeOf(row);
  const cacheFile = inode === undefined ? undefined : context.cacheFiles.get(inode.kernelNodeId);
  if (cacheFile === undefined) return;
  context.metadata.afterCommit(() =>
    context.background("looking at a file that is open for writing", async () => {
      await cacheFile.detectWrites();
      cacheFile.whileStatIsCurrent(() => advance(context, row.id));
    }),
  );
}

/**
 * Milliseconds. A hundred thousand rows that wait for one event must not be looked at all the time, so the pause grows
 * with the wait. For a writer it stays short, because the patience for a writer ends at a certain time.
 */
function recheckAfter({ runtime }: Host, row: NodeRow, { for: reason }: Extract<Step, { do: "wait" }>): number {
  if (reason === "writer" || reason === "look" || reason === "answer") return RECHECK_MS;
  const { changedAt, seenAt } = row;
  const since = changedAt === null || seenAt === null ? (changedAt ?? seenAt) : laterOf(changedAt, seenAt);
  if (since === null) return RECHECK_MAX_MS;
  const waited = minus(runtime.now(), since);
  return Math.round(Math.min(RECHECK_MAX_MS, Math.max(RECHECK_MS, waited / 2)));
}

/**
 * Requests a read of the row's node while the row waits for another row. Where the gateway does not tell of deletions,
 * the settle time of a deletion so begins during the wait, and not after it. Only a row that is due asks: the read
 * itself advances the row, and must not request the next one.
 */
function askForDeletion({ client, metadata, runtime }: Rows & Remote & Host, { nodeId, due }: NodeRow): void {
  if (client.features.isFull || nodeId === null || due === null || due > runtime.now()) return;
  if (!metadata.rereads.has(nodeId)) metadata.rereads.add(nodeId);
}

/** The rows do not know enough: the node is read again, and the row waits for that. */
function waitForRefresh(context: Rows & Uploads & Host, row: NodeRow): Pending {
  if (row.nodeId !== null) context.metadata.rereads.add(row.nodeId);
  context.activity.wake();
  const due = plus(context.runtime.now(), LOOK_AGAIN_MS);
  return { row: context.metadata.nodes.update(row.id, { due }), step: { do: "wait", for: "name" } };
}

/** Returns false if the place that the step needs is not known well enough yet. */
function carryOut(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  row: NodeRow,
  step: Extract<Step, { do: "adopt" | "adoptPlace" | "undelete" | "removeLocal" | "recreate" | "conflict" }>,
  aside: NodeRowId[],
): boolean {
  switch (step.do) {
    case "adopt":
    case "adoptPlace": {
      const adopted = step.do === "adopt" ? adoptNode(context, row, step) : adoptPlace(context, row, step.node);
      if (!adopted.isAdopted) return false;
      context.runtime.step("adopt: not committed");
      const other = adopted.aside === undefined ? undefined : context.metadata.nodes.ofEntry(adopted.aside.id);
      if (other !== undefined) aside.push(other.id);
      leftPlace(context, row);
      return true;
    }
    case "undelete":
      return undelete(context, row, step);
    case "removeLocal":
      removeLocal(context, row);
      return true;
    case "recreate":
      recreate(context, row);
      return true;
    case "conflict":
      keepBoth(context, row, step);
      return true;
  }
}

/** The gateway does not have the node, and nothing here wants it. */
function forgetRow(context: Rows & Remote & Uploads & Host & Tree, row: NodeRow): void {
  addTombstone(context, row);
  context.nodeRows.drop(row.id);
  leftPlace(context, row);
  context.activity.progressed();
}

/** Remembers the deletion until listings and journal have passed it. */
export function addTombstone(context: Rows & Remote & Host, { nodeId, seen, base }: NodeRow): void {
  if (nodeId === null) return;
  const deletion = seen !== null && "deleted" in seen ? seen : undefined;
  const revision = deletion?.revision ?? base?.revision ?? 0;
  const { metadata, client, runtime } = context;
  vacateState(context, nodeId, base, null);
  // Without a journal, nothing will tell the position of the deletion. It gets the time that stands for positions.
  const position = deletion?.position ?? (client.features.isFull ? null : millisecondsOf(runtime.now()));
  metadata.tombstones.add({ nodeId, revision, position });
}

/**
 * The node of the row was, in base, at this place, and is not any more. The row that waits for the name is planned
 * again, and so is the row of the folder.
 */
export function leftPlace(context: Rows & Tree, row: NodeRow): void {
  const { metadata } = context;
  if (row.base?.parent == null) return;
  const folderRow = metadata.nodes.ofNodeId(row.base.parent);
  if (folderRow !== undefined && (folderRow.entry === null || folderRow.seen !== null))
    context.queue.enqueue(folderRow);
  const folder = context.nodeRows.folderOfNode(row.base.parent);
  const entry = folder === undefined ? undefined : metadata.entries.find(folder, row.base.name);
  const waiting = entry === undefined ? undefined : metadata.nodes.ofEntry(entry.id);
  if (waiting !== undefined && waiting.id !== row.id) context.queue.enqueue(waiting);
  // A node that came back to the place, under a temporary name.
  for (const other of metadata.nodes.atPlace(row.base.parent, row.base.name)) {
    if (other.id !== row.id && other.id !== waiting?.id && other.entry !== null) context.queue.enqueue(other);
  }
}

function undelete(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  row: NodeRow,
  { node }: Extract<Step, { do: "undelete" }>,
): boolean {
  const { metadata } = context;
  const folder = node.parentId === null ? undefined : undeleteFolder(context, node.parentId);
  if (folder === undefined) return false;
  const shown = shownNameOf(context, node.id, node.name);
  const occupant = metadata.entries.find(folder, shown.name);
  if (occupant !== undefined) moveToConflictName(context, occupant);
  const inode = joinGroup(context, node) ?? inodeApart(context, node);
  const entry = metadata.entries.create(folder, shown.name, inode.id, shown.gatewayName);
  const base = baseOf(node, row.base?.position);
  metadata.nodes.update(row.id, { entry: entry.id, base, seen: null, seenAt: null });
  lookLater(context, inode.id);
  return true;
}

function removeLocal(context: Rows & LocalFiles & Remote & Host & Tree, row: NodeRow): void {
  const { metadata } = context;
  addTombstone(context, row);
  context.nodeRows.drop(row.id);
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  if (entry !== undefined) {
    const isDetached = leaveToWriter(context, entry, row);
    metadata.entries.remove(entry.id);
    metadata.inodes.update(entry.inode, { ctime: context.stats.nowText() });
    context.names.keepInOthers(entry.inode, row);
    if (!isDetached) context.orphans.renewIfOrphan(entry.inode);
  }
  leftPlace(context, row);
}

/** Detaches the file from its last name if a program has it open for writing. Returns whether that is so. */
function leaveToWriter(context: Rows & LocalFiles & Tree, entry: Entry, { nodeId, base }: NodeRow): boolean {
  const { metadata } = context;
  const inode = metadata.inodes.get(entry.inode);
  if (inode?.kind !== "file" || context.cacheFiles.writersOf(inode) === 0 || metadata.entries.links(inode.id) > 1)
    return false;
  const version = { originNode: nodeId, originVersion: base?.head ?? null, hash: inode.hash };
  detachFromName(context, inode, entry, version, true);
  return true;
}

function recreate(context: Rows & Remote & Uploads & Host & Tree, row: NodeRow): void {
  addTombstone(context, row);
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  if (entry !== undefined) moveBack(context, entry);
  if (entry !== undefined) leaveGroup(context, entry.inode);
  context.queue.setNodeDirty(row, null, { nodeId: null, base: null, seen: null, seenAt: null });
  leftPlace(context, row);
}

/** The local content goes on under a conflict name as a new node. The name shows the remote head. */
function keepBoth(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  row: NodeRow,
  { node }: Extract<Step, { do: "conflict" }>,
): void {
  const { metadata } = context;
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  if (entry === undefined) return;
  const group = metadata.inodes.get(entry.inode)?.linkGroup ?? null;
  const isGroupUpdate = group !== null && groupOf(node) === group;
  const joined = isGroupUpdate ? undefined : joinGroup(context, node);
  const remote = joined ?? inodeApart(context, node);
  metadata.entries.setInode(entry.id, remote.id);
  keepLinkLease(context, entry.inode, remote.id);
  // All names of a linked file show the remote content, and one copy keeps the local content.
  const others = metadata.entries.ofInode(entry.inode);
  if (isGroupUpdate) for (const other of others) metadata.entries.setInode(other.id, remote.id);
  const isKept = others.length > 0 && !isGroupUpdate;
  if (isKept) context.names.keepInOthers(entry.inode, row);
  else makeConflictCopy(context, row, entry);
  // The other changes that were seen (a move, attributes) are decided next, when the content is out of the way. An
  // inode that was made of the node belongs to its group already, so the group's other names are not looked for again.
  const { link } = node.attributes;
  const isLinkTaken = joined === undefined && !isGroupUpdate && link !== undefined;
  const attributes = isLinkTaken ? { ...row.base?.attributes, link } : (row.base?.attributes ?? {});
  const agreed = { head: node.head, hash: node.contentHash, size: node.size, attributes };
  const base = row.base === null ? null : { ...row.base, ...agreed };
  metadata.nodes.update(row.id, { base });
}

/** The entry's former inode, with the local content and no name, becomes a new node under a conflict name. */
function makeConflictCopy(context: Rows & Uploads & Host & Tree, row: NodeRow, entry: Entry): void {
  const name = keepCopy(context, entry, row, "conflict");
  context.metadata.afterCommit(context.activity.conflicted);
  context.log.warn({ name: entry.name, copy: name }, "changed here and elsewhere: both are kept");
}
