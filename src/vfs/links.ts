/**
 * Hard links (attribute `link` = group and hash): every name is a node of its own at the gateway, and
 * the names of one group share an inode here. While its nodes differ an update is under way: whoever
 * made it brings the others up to it, everybody else shows the newest and sends nothing. A node with
 * other content than its link says was written by somebody who knows of no links: it leaves for good.
 */
import { sameAttributes } from "../contract/attributes.ts";
import type { Node } from "../contract/resources.ts";
import type { Inode } from "../metadata/inodes.ts";
import { type NodeRow, writtenAt } from "../metadata/nodes.ts";
import { markInode } from "./changes.ts";
import type { Context } from "./context.ts";
import { contentOfNode, groupOf, makeInodeOf } from "./from-node.ts";
import { comesFrom } from "./holes.ts";
import { writersOf } from "./live.ts";
import { handOver } from "./nameless.ts";
import { kindOf } from "./stat.ts";

/** Before others bring the nodes of a linked file together: who changed it has his turn first. */
const TURN_MS = 60_000;

type Needs = Pick<Context, "metadata">;

/** The node rows of an inode's names. */
export function rowsOfInode({ metadata }: Needs, inode: number): NodeRow[] {
  return metadata.entries.ofInode(inode).flatMap((entry) => metadata.nodes.ofEntry(entry.id) ?? []);
}

/** A name of a linked file that nobody here changed: what its node lacks is for others to bring. */
export function isFollower({ metadata }: Needs, row: NodeRow, inode: Inode): boolean {
  const isUntouched = row.dirtySince === null && row.base !== null && inode.content !== "dirty";
  if (!isUntouched || inode.linkGroup === null || row.base?.attributes.link?.group !== inode.linkGroup) return false;
  return metadata.entries.links(inode.id) > 1;
}

/**
 * Neither another name of the inode nor what it shows was written later. What it shows may be a version of a node that
 * is none of its names any more, and have come to none of theirs. What is none of its group's is not behind it.
 */
export function isNewest(context: Needs, inode: Inode, node: Node): boolean {
  if (groupOf(node) !== inode.linkGroup) return true;
  const written = Date.parse(writtenAt(node));
  const isNoLater = ({ nodeId, base }: NodeRow) =>
    nodeId === node.id || base === null || Date.parse(base.modifiedAt) <= written;
  const shown = rowOfOrigin(context, inode);
  // Asked first: a name that is behind is told by this alone, without a look at thousands for each.
  if (shown !== undefined && !isNoLater(shown)) return false;
  return rowsOfInode(context, inode.id).every(isNoLater);
}

/** Whose head the content is. */
function rowOfOrigin({ metadata }: Needs, { originNode, originVersion }: Inode): NodeRow | undefined {
  const row = originNode === null ? undefined : metadata.nodes.ofNodeId(originNode);
  return row?.base?.head === originVersion ? row : undefined;
}

/**
 * A node has its content, so that it is known when that was written. What is only a former version of a node, or was the
 * head of one that is gone, is sent to all names as what was changed here is, and what comes in replaces it no more.
 */
export function isAtNode(context: Needs, inode: Inode): boolean {
  if (inode.content !== "clean") return false;
  if (rowOfOrigin(context, inode) !== undefined) return true;
  return inode.hash !== null && rowsOfInode(context, inode.id).some(({ base }) => base?.hash === inode.hash);
}

/** What the node's content lives on under, should this name of it go. */
export function hasOtherNames({ metadata }: Needs, row: NodeRow, inode: Inode | undefined): boolean {
  if (inode !== undefined) return inode.kind !== "folder" && metadata.entries.links(inode.id) > 1;
  if (row.seen === null || !("node" in row.seen)) return false;
  const { node } = row.seen;
  const group = groupOf(node);
  return group !== null && metadata.inodes.ofGroup(group).some((other) => goesOnAs({ metadata }, other, node));
}

/**
 * What was changed here meanwhile does not take the node's content over: another node of its own has to have that.
 * Nor does other content that was written later, which need not have been made of it; nor what is merely open for
 * writing, which may be changed at any moment, of which the rows may not know yet.
 */
function goesOnAs({ metadata }: Needs, inode: Inode, node: Node): boolean {
  const { contentHash } = node;
  const isSame = inode.content === "clean" && inode.hash === contentHash;
  if (isSame || isAtNode({ metadata }, inode)) {
    const isTaken = isSame || isNewest({ metadata }, inode, node);
    return isTaken && metadata.entries.links(inode.id) > 0;
  }
  return rowsOfInode({ metadata }, inode.id).some(({ base, seen }) => {
    const head = seen !== null && "node" in seen ? seen.node.contentHash : base?.hash;
    return (seen === null || "node" in seen) && head === contentHash;
  });
}

/** It was removed here, written elsewhere: the names that are left show that, and their nodes get it before it goes. */
export function leaveToOthers(context: Context, node: Node): void {
  const other = joinGroup(context, node);
  if (other?.content === "clean" && other.originNode === node.id) markInode(context, other.id);
}

/** The node holds what its other names here show. */
export function isLike(inode: Inode, { contentHash, attributes }: Node): boolean {
  const { link: _, ...own } = attributes;
  return contentHash !== null && contentHash === inode.hash && sameAttributes(own, inode.attributes);
}

/**
 * The inode the node is a name of, if its group has one here. Shows the node's content afterwards if
 * that is the newest. What was changed here meanwhile, or no node has any more, is joined only by a
 * node it was made from.
 */
export function joinGroup(context: Context, node: Node): Inode | undefined {
  const group = groupOf(node);
  if (group === null) return undefined;
  const { metadata } = context;
  for (const inode of metadata.inodes.ofGroup(group)) {
    if (inode.kind !== kindOf(node) || metadata.entries.links(inode.id) === 0) continue;
    if (inode.hash === node.contentHash) return inode;
    if (!isAtNode(context, inode)) {
      if (rowsOfInode(context, inode.id).some(({ base }) => base?.hash === node.contentHash)) return inode;
    } else if (!isNewest(context, inode, node)) {
      return inode;
    } else if (writersOf(context, inode) === 0) {
      return metadata.inodes.switchLineage(inode.id, { ...contentOfNode(node), changes: inode.changes + 1 });
    }
  }
  return undefined;
}

/**
 * The same for a name that was changed or removed here: what its node lacks is sent at once. So not if other content,
 * already sent, is shown: that it was written later does not say that it was made of the node's, which nobody here has
 * seen. Whoever wrote the two knows, and has his turn.
 */
export function joinShown(context: Context, node: Node): Inode | undefined {
  const inode = joinGroup(context, node);
  return inode?.content === "clean" && inode.hash !== node.contentHash ? undefined : inode;
}

/** The group's names that came in before the inode was known to belong to it become names of it. True if there were any. */
export function gatherNames(context: Context, group: string, inode: number): boolean {
  const { metadata } = context;
  let isAny = false;
  for (const other of metadata.inodes.ofGroup(group)) {
    const isMovable = other.id !== inode && other.content === "clean" && writersOf(context, other) === 0;
    if (!isMovable || other.kind !== metadata.inodes.get(inode)?.kind) continue;
    for (const entry of metadata.entries.ofInode(other.id)) {
      metadata.entries.setInode(entry.id, inode);
      isAny = true;
    }
    handOver(context, other.id);
  }
  return isAny;
}

/**
 * Its content goes on as a new node's. The nodes of the group, wherever their names are, never had it: as one
 * more of them it would be taken for one that is behind, and written over with theirs.
 */
export function leaveGroup({ metadata }: Needs, inode: number): void {
  if (metadata.inodes.get(inode)?.linkGroup != null) metadata.inodes.update(inode, { linkGroup: null });
}

/**
 * A new inode for a node that is no name of any here. What was changed here of the same group and has no node yet goes on
 * as another file: none of the group's nodes is asked whether it may have that, so nobody would be told of both, and as
 * one more of them it would be taken for one that is behind.
 */
export function inodeApart(context: Context, node: Node): Inode {
  const { metadata, runtime } = context;
  const group = groupOf(node);
  for (const { id, content } of group === null ? [] : metadata.inodes.ofGroup(group)) {
    const rows = rowsOfInode(context, id);
    const isElsewhere = content === "clean" || rows.some(({ nodeId }) => nodeId !== null);
    if (!isElsewhere) metadata.inodes.update(id, { linkGroup: rows.length > 1 ? runtime.uuid() : null });
  }
  return makeInodeOf(context, node);
}

/** Something came in by one of its names. A node that is still behind when this time is over is brought up from here. */
export function lookLater(context: Parameters<typeof markInode>[0], inode: number): void {
  if (context.metadata.entries.links(inode) < 2) return;
  for (const row of rowsOfInode(context, inode)) lookLaterAt(context, row);
}

/** The same where it is known which of the names is behind: the others are as they were. */
export function lookLaterAt({ metadata, runtime, activity }: Parameters<typeof markInode>[0], row: NodeRow): void {
  if (row.due !== null || row.dirtySince !== null) return;
  // Not all mounts at once: the second finds it done.
  const due = runtime.now() + Math.round(TURN_MS * (1 + runtime.random()));
  metadata.nodes.update(row.id, { due });
  activity.wake(due);
}

/** One of its names went, `row` with it: the nodes of the others have to hold all there is of it from now on. */
export function keepInOthers(
  context: Parameters<typeof markInode>[0] & Pick<Context, "lives">,
  inode: number,
  row: NodeRow | undefined,
): void {
  if (context.metadata.inodes.get(inode)?.linkGroup != null) markInode(context, inode, row?.dirtySince);
  haveFromOthers(context, inode);
}

/**
 * It is a version of a node that has it still, from which its bytes are had: the one it came from may be deleted
 * before a name that is left gives its own node away. Also while somebody has it open for writing: as long as its
 * hash is known it is that version, and what is missing of it is the same in both.
 */
function haveFromOthers({ metadata, lives }: Pick<Context, "metadata" | "lives">, id: number): void {
  const inode = metadata.inodes.get(id);
  if (inode === undefined || inode.content === "dirty" || inode.hash === null || inode.originNode === null) return;
  const [other, ...more] = rowsOfInode({ metadata }, id).filter(({ base }) => base?.hash === inode.hash);
  if (other?.nodeId == null || other.base?.head == null) return;
  if ([other, ...more].some(({ nodeId }) => nodeId === inode.originNode)) return;
  const [node, version] = [other.nodeId, other.base.head];
  metadata.inodes.update(id, { originNode: node, originVersion: version });
  comesFrom({ metadata, lives }, inode.lineage, { node, version });
}
