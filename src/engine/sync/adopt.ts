/**
 * Adopts the gateway's state of a node: place, content, attributes. A program that has the file open keeps the old
 * bytes, because the inode gets a new kernel node id. Runs inside the caller's transaction.
 */
import type { Attributes } from "../../contract/attributes.ts";
import { sameValue } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import { formatTime, timeFromMilliseconds } from "../../lib/time.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { EntryId, InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { baseOf, kindOf, type NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { detachFromName } from "./detached-files.ts";
import { groupOf } from "./from-node.ts";
import {
  contentAfter,
  enterGroup,
  gatherNames,
  giveName,
  inodeApart,
  joinGroup,
  keepLinkLease,
  knowSaves,
  leaveToOthers,
  lookLater,
  orderInGroup,
  orderOf,
  unite,
  withUnsent,
} from "./link-groups.ts";
import { freeConflictName, moveToConflictName, moveToTemporaryName, shownNameOf } from "./name-conflicts.ts";
import type { Step } from "./plan.ts";
import { isSeenAway } from "./rename-cycles.ts";

type AdoptStep = Extract<Step, { do: "adopt" }>;

/** `aside`: the entry that left its name for this one, and has another place to go to. */
interface Adopted {
  /** False: the rows do not know the node's new place well enough yet, and nothing was changed. */
  readonly isAdopted: boolean;
  readonly aside?: Entry;
}

const NOT_YET: Adopted = { isAdopted: false };

/** Carries out the step "adopt". The rows are as the step says afterwards, unless the place is not known. */
export function adoptNode(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  row: NodeRow,
  step: Extract<Step, { do: "adopt" }>,
): Adopted {
  const { metadata } = context;
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  let adopted: Adopted = { isAdopted: true };
  if (entry !== undefined && inode !== undefined) {
    if (step.isPlaceAdopted) adopted = takePlace(context, entry, step.node);
    if (!adopted.isAdopted) return adopted;
    takeContent(context, entry, inode, row, step);
    takeLink(context, entry.id, row, step.node);
  } else if (step.node.head !== row.base?.head) leaveToOthers(context, step.node);
  const { node } = step;
  // A gateway that tells no hashes has the same content as long as it has the same head.
  const hash = node.contentHash ?? (node.head === row.base?.head ? row.base.hash : null);
  const base = { ...baseOf(node, row.base?.position), hash };
  metadata.nodes.update(row.id, { base, seen: null, seenAt: null });
  return adopted;
}

/** Adopts the place only. Other news of the node is decided later. */
export function adoptPlace(context: Rows & Host & Tree, row: NodeRow, node: Node): Adopted {
  const { metadata } = context;
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  if (entry === undefined || row.base === null) return NOT_YET;
  const adopted = takePlace(context, entry, node);
  if (!adopted.isAdopted) return adopted;
  metadata.nodes.update(row.id, { base: { ...row.base, parent: node.parentId, name: node.name } });
  return adopted;
}

function takePlace(context: Rows & Host & Tree, entry: Entry, node: Node): Adopted {
  const { metadata } = context;
  const folder = node.parentId === null ? undefined : undeleteFolder(context, node.parentId);
  if (folder === undefined) return NOT_YET;
  let aside: Entry | undefined;
  const shown = shownNameOf(context, node.id, node.name);
  const occupant = metadata.entries.find(folder, shown.name);
  if (occupant !== undefined && occupant.id !== entry.id) {
    const other = metadata.nodes.ofEntry(occupant.id);
    if (other !== undefined && isSeenAway(other)) {
      moveToTemporaryName(context, occupant);
      aside = occupant;
    } else if (other?.base?.parent === node.parentId && other.base.name === node.name && other.nodeId !== null) {
      // Two nodes cannot have one name, so the row of the other node is out of date.
      metadata.rereads.add(other.nodeId);
      return NOT_YET;
    } else moveToConflictName(context, occupant);
  }
  while (context.nodeRows.isInside(folder, entry.inode)) openCircle(context, folder, entry.inode);
  metadata.entries.move(entry.id, folder, shown.name, shown.gatewayName);
  metadata.inodes.update(entry.inode, { ctime: context.stats.nowText() });
  return aside === undefined ? { isAdopted: true } : { isAdopted: true, aside };
}

/**
 * Here, the target folder is inside the folder that moves, because a program moved an ancestor of the target into it.
 * The remote place wins, so that ancestor goes back to its place at the gateway.
 */
function openCircle(context: Rows & Host & Tree, target: InodeId, moved: InodeId): void {
  const { metadata } = context;
  let current = target;
  let nearest: Entry | undefined;
  while (current !== moved) {
    const [entry] = metadata.entries.ofInode(current);
    if (entry === undefined) break;
    nearest ??= entry;
    const row = metadata.nodes.ofEntry(entry.id);
    const home = row?.base?.parent == null ? undefined : context.nodeRows.folderOfNode(row.base.parent);
    if (row?.base != null && home !== undefined && !context.nodeRows.isInside(home, moved)) {
      const shown = shownNameOf(context, row.nodeId ?? "", row.base.name);
      if (metadata.entries.find(home, shown.name) === undefined) {
        metadata.entries.move(entry.id, home, shown.name, shown.gatewayName);
      } else metadata.entries.move(entry.id, home, freeConflictName(context, home, row.base.name));
      context.queue.setNodeDirty(row);
      return;
    }
    current = entry.parent;
  }
  if (nearest === undefined) throw new Error(`no way from folder ${target} to ${moved}`);
  metadata.entries.move(
    nearest.id,
    ROOT_INODE,
    freeConflictName(context, ROOT_INODE, nearest.gatewayName ?? nearest.name),
  );
  const row = metadata.nodes.ofEntry(nearest.id);
  if (row !== undefined) context.queue.setNodeDirty(row);
}

function takeContent(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  entry: Entry,
  inode: Inode,
  row: NodeRow,
  step: AdoptStep,
): void {
  const { metadata } = context;
  const { node, attributes, isContentAdopted } = step;
  // The kind follows from the merged attributes, so that the node does not undo a change of kind that was made here.
  const kind = kindOf({ ...node, attributes });
  const names = metadata.entries.links(inode.id);
  const isLinkUnsent = names > 1 && row.base?.attributes.link?.group !== inode.linkGroup;
  if (!isContentAdopted && kind === inode.kind) {
    takeAttributes(context, inode, step, isLinkUnsent);
    return;
  }
  const group = groupOf(node);
  const isOther = group === null || group !== inode.linkGroup || orderInGroup(inode, node) === "apart";
  if (names > 1 && inode.kind !== "folder" && !isLinkUnsent && isOther) {
    // This name leaves the inode. Either a client that does not know of links changed the node, or another mount
    // changed it without knowing a change under another name.
    leaveInode(context, entry, row, node);
    return;
  }
  const shown = leftToWriter(context, entry, inode, row) ?? inode;
  if (names === 1 && joinNames(context, metadata.entries.get(entry.id) ?? entry, shown, node)) return;
  const { link: _, ...own } = attributes;
  const changes = shown.changes + 1;
  metadata.inodes.replaceKernelNodeId(shown.id, {
    ...contentAfter(context, shown, node),
    // The inode's other names have nodes of their own. These get this content.
    attributes: isLinkUnsent ? withPinnedMtime(own, node) : own,
    kind,
    changes,
    linkGroup: isLinkUnsent ? (group ?? inode.linkGroup) : group,
  });
  if (isLinkUnsent) context.queue.setInodeDirty(shown.id);
  else lookLater(context, shown.id);
}

/**
 * If a program has the file open for writing and has written nothing, it keeps the inode and its bytes. The names go on
 * with a new inode in the same state. Returns the new inode; undefined if there is no writer.
 */
function leftToWriter(
  context: Rows & LocalFiles & Tree,
  entry: Entry,
  inode: Inode,
  { nodeId, base }: NodeRow,
): Inode | undefined {
  const { metadata } = context;
  if (inode.kind !== "file" || context.cacheFiles.writersOf(inode) === 0) return undefined;
  const version = { originNode: nodeId, originVersion: base?.head ?? null, hash: inode.hash };
  const { linkGroup, saves, isFsynced } = inode;
  const made = metadata.inodes.create({ ...inode, ...version, content: "clean" });
  metadata.inodes.update(made.id, { linkGroup, saves, isFsynced });
  detachFromName(context, inode, entry, version, false);
  for (const { id } of metadata.entries.ofInode(inode.id)) metadata.entries.setInode(id, made.id);
  keepLinkLease(context, inode.id, made.id);
  return metadata.inodes.get(made.id);
}

function takeAttributes(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  inode: Inode,
  step: AdoptStep,
  isLinkUnsent: boolean,
): void {
  const { metadata } = context;
  const { node, attributes, isContentAgreed } = step;
  const { link: _, ...own } = attributes;
  const isChanged = !sameValue(own, inode.attributes);
  // The target of a symlink is its content: the kernel keeps it with the kernel node id.
  const isRetargeted = inode.kind === "symlink" && own.target !== inode.attributes.target;
  const change = isRetargeted ? metadata.inodes.replaceKernelNodeId : metadata.inodes.update;
  change(inode.id, {
    ...(isChanged ? { attributes: own, ctime: context.stats.nowText() } : {}),
    ...(isContentAgreed
      ? { content: stateOfAgreed(context, inode), originNode: node.id, originVersion: node.head }
      : {}),
  });
  // Other mounts do not know yet that the inode's other names are to get these attributes, so this mount sends them.
  if (isChanged && isLinkUnsent) context.queue.setInodeDirty(inode.id);
  else if (isChanged) lookLater(context, inode.id);
  if (!isContentAgreed) return;
  knowSaves(context, metadata.inodes.get(inode.id) ?? inode, node.attributes.link);
  if (node.head !== null) context.cacheFiles.comesFrom(inode.kernelNodeId, { node: node.id, version: node.head });
  for (const snapshot of metadata.snapshots.unusedOf(inode.id)) context.snapshotFiles.drop(snapshot.id);
}

/** With a writer that has not written since, the content is "open". That mark has the file checked after a crash. */
const stateOfAgreed = (context: LocalFiles, inode: Inode) =>
  context.cacheFiles.writersOf(inode) > 0 ? "open" : "clean";

/** Adopts the attribute `link`: the node joined a hard link group, or left one. `row`: as before the adoption. */
function takeLink(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  entryId: EntryId,
  row: NodeRow,
  node: Node,
): void {
  const { metadata } = context;
  const { base } = row;
  const entry = metadata.entries.get(entryId);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  if (entry === undefined || inode === undefined || inode.kind === "folder") return;
  if (base === null) return;
  const group = groupOf(node);
  const { link } = base.attributes;
  // A node with other content than its link says does not belong to the group, even if the group's other names happen
  // to show that content by now.
  const hasLeft = group === null && link !== undefined && link.hash === base.hash;
  if (sameValue(link, node.attributes.link) && !hasLeft) return;
  const names = metadata.entries.links(inode.id);
  if (group === null) {
    if (names > 1) leaveInode(context, entry, row, node);
    else metadata.inodes.update(inode.id, { linkGroup: null });
    return;
  }
  if (row.dirtySince !== null && group !== inode.linkGroup && isOtherFile(inode, node)) return;
  const isMovable = names === 1 && inode.content === "clean" && context.cacheFiles.writersOf(inode) === 0;
  if (isMovable && joinNames(context, entry, inode, node)) return;
  const before = inode.linkGroup;
  const gathered = gatherNames(context, enterGroup(context, inode, node));
  if (gathered !== undefined || (before !== group && names > 1)) context.queue.setInodeDirty(gathered?.id ?? inode.id);
  else lookLater(context, inode.id);
}

/**
 * True: a different file took this name here and is to be sent to the node. Then the node's link belongs to the content
 * that the node has so far, and not to this file.
 */
function isOtherFile({ kind, content, hash }: Inode, node: Node): boolean {
  return kind !== kindOf(node) || (kind === "file" && content === "clean" && hash !== node.contentHash);
}

/**
 * The name becomes one more name of its group's inode. If the two inodes are one file, they are united; else the name
 * leaves its own inode. Returns false if the group has no inode here.
 */
function joinNames(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  entry: Entry,
  inode: Inode,
  node: Node,
): boolean {
  const group = joinGroup(context, node, inode.id);
  if (group === undefined) return false;
  let joined = group;
  // `joinGroup` may have gathered the names of the group just now, with this one.
  if (context.metadata.entries.get(entry.id)?.inode === inode.id && group.id !== inode.id) {
    if (isSameFile(group, inode)) joined = unite(context, group, inode);
    else giveName(context, entry, inode, group.id);
  }
  if (joined.content !== "clean") context.queue.setInodeDirty(joined.id);
  else lookLater(context, joined.id);
  return true;
}

/** False: the name's inode is another file than the group's, for example one that never belonged to the group. */
function isSameFile(group: Inode, inode: Inode): boolean {
  if (inode.linkGroup !== null && inode.linkGroup !== group.linkGroup) return false;
  const order = orderOf(group, inode);
  return order === "same" || order === "behind";
}

function leaveInode(context: Rows & LocalFiles & Uploads & Host & Tree, entry: Entry, row: NodeRow, node: Node): void {
  const { metadata } = context;
  const left = metadata.inodes.get(entry.inode);
  const own = joinGroup(context, node) ?? inodeApart(context, node);
  metadata.entries.setInode(entry.id, own.id);
  if (left !== undefined) metadata.inodes.update(own.id, { attributes: withUnsent(own.attributes, row, left) });
  lookLater(context, own.id);
  context.names.keepInOthers(entry.inode, row);
}

/**
 * The inode of the folder with this node id. If a program here removed the folder and its deletion is not sent yet, the
 * folder comes back, because something lives in it. Undefined: the folder is not known.
 */
export function undeleteFolder(
  context: Rows & Host & Tree,
  nodeId: string,
  visited = new Set<string>(),
): InodeId | undefined {
  const { metadata } = context;
  // The rows know only one of two moves at the gateway, and show a circle.
  if (visited.has(nodeId)) return undefined;
  visited.add(nodeId);
  const row = metadata.nodes.ofNodeId(nodeId);
  if (row === undefined || row.kind !== "folder" || row.base === null) return undefined;
  if (row.entry !== null) return metadata.entries.get(row.entry)?.inode;
  const parent = row.base.parent === null ? undefined : undeleteFolder(context, row.base.parent, visited);
  if (parent === undefined) return undefined;
  const time = context.stats.nowText();
  const inode = metadata.inodes.create({
    kind: "folder",
    attributes: row.base.attributes,
    size: 0,
    hash: null,
    originNode: null,
    originVersion: null,
    content: "clean",
    atime: time,
    ctime: time,
  });
  // A program has put another entry in the folder's place since. The gateway does not have it there, so it moves to a
  // conflict name.
  const shown = shownNameOf(context, nodeId, row.base.name);
  const occupant = metadata.entries.find(parent, shown.name);
  if (occupant !== undefined) moveToConflictName(context, occupant);
  const entry = metadata.entries.create(parent, shown.name, inode.id, shown.gatewayName);
  context.queue.setNodeDirty(row, null, { entry: entry.id });
  return inode.id;
}

/** Makes an mtime that is the node's default (modifiedAt) an attribute, because the content goes on to other nodes. */
function withPinnedMtime(attributes: Attributes, { modifiedAt }: Node): Attributes {
  return { mtime: formatTime(timeFromMilliseconds(Date.parse(modifiedAt))), ...attributes };
}
