/**
 * Hard links (attribute `link` = group, hash, saves). Every name is a node of its own at the gateway; here the names of
 * one group share an inode. While the nodes of a group differ, an update is under way: the mount that made it brings
 * the other nodes up to date, and every other mount shows the newest node and sends nothing. The saves tell which node
 * is the newest (contract/saves). If two nodes were written at the same time, neither is the newest. They are two files
 * until a writer that knows both makes them one. A node with other content than its link says was written by a client
 * that knows nothing of links: it leaves the group for good.
 *
 * News of a group's nodes comes in any order, so two inodes may turn out to be one file. Then the inode that programs
 * know goes on, and the other inode's names become names of it (see `unite`).
 */
import { type Attributes, sameValue } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import { type Link, orderOfSaves, savesOfBoth, savesOfContent, savesOfLink } from "../../contract/saves.ts";
import { earlierOf, plus, type RowTime } from "../../lib/clocks.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { kindOf, type NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { contentOfNode, groupOf, makeInodeOf, savesOfNode } from "./from-node.ts";
import { mergeAttributes, withTimeOf } from "./merge-attributes.ts";

/**
 * The shortest link lease. Other mounts wait this long before they bring the nodes of a linked file up to date: the
 * mount that changed it goes first.
 */
const LINK_LEASE_MS = 60_000;
/** Names that are marked in one go when the link lease is over. */
const NAMES = 100;

type Needs = Pick<Rows, "metadata">;
type Joining = Pick<Rows & LocalFiles, "metadata" | "cacheFiles">;

/** True: the row is of a linked file that was not changed here. Other mounts bring its node up to date. */
export function isFollower({ metadata }: Needs, row: NodeRow, inode: Inode): boolean {
  const isUntouched = row.dirtySince === null && row.base !== null && inode.content !== "dirty";
  if (!isUntouched || inode.linkGroup === null || row.base?.attributes.link?.group !== inode.linkGroup) return false;
  return metadata.entries.links(inode.id) > 1;
}

/** The order of a node's content to the content of an inode of its group. "behind" and "newer" are said of the node. */
type Order = "same" | "behind" | "newer" | "apart";

type Saved = Pick<Inode, "hash" | "saves">;

const savesOf = ({ hash, saves }: Saved) => saves ?? (hash === null ? [] : savesOfContent(hash));

const savedAs = (node: Node): Saved => ({ hash: node.contentHash, saves: savesOfNode(node) });

/**
 * The order of `other` and the inode, by the saves that led to each. Apart: neither writer had seen the other's
 * content. So neither content may replace the other, nor be shown as if it had.
 */
export function orderOf(inode: Saved, other: Saved): Order {
  if (inode.hash !== null && inode.hash === other.hash) return "same";
  const order = orderOfSaves(savesOf(inode), savesOf(other));
  // Content without a hash is being written and is not a save yet, so no other mount has seen it.
  return order === "newer" && inode.hash === null ? "apart" : order;
}

/** The order of the node's content to the file's. Null: the node is in no group, or in another one. */
export function orderInGroup(inode: Inode, node: Node): Order | null {
  if (inode.linkGroup === null || groupOf(node) !== inode.linkGroup) return null;
  return orderOf(inode, savedAs(node));
}

/** The fields of the inode once it shows the node's content in place of its own. */
export function contentAfter(context: Pick<Tree, "stats">, inode: Inode, node: Node) {
  return { ...contentOfNode(node, context.stats.nowText()), saves: savesInPlace(inode, node) };
}

function savesInPlace(inode: Inode, node: Node): readonly string[] | null {
  const theirs = savesOfNode(node);
  if (inode.linkGroup === null) return theirs;
  // A client that knows nothing of links wrote the node. All names show its content, so from here on it is a save of
  // the group.
  if (theirs === null) return node.contentHash === null ? null : savesOfContent(node.contentHash, savesOf(inode));
  const isNewer = groupOf(node) === inode.linkGroup && orderOf(inode, savedAs(node)) === "newer";
  return isNewer ? savesOfBoth(theirs, savesOf(inode)) : theirs;
}

/**
 * The node has the content that the inode shows, but other saves may have led to it. The inode takes over those saves
 * too, so that all of them count as behind.
 */
export function knowSaves({ metadata }: Needs, inode: Inode, link: Link | undefined): Inode {
  if (link === undefined || link.group !== inode.linkGroup || link.hash !== inode.hash) return inode;
  const [own, theirs] = [savesOf(inode), savesOfLink(link)];
  const isTheirsLater = own[0] !== undefined && theirs.includes(own[0]);
  const saves = isTheirsLater ? savesOfBoth(theirs, own) : savesOfBoth(own, theirs);
  return sameValue(saves, own) ? inode : metadata.inodes.update(inode.id, { saves });
}

/**
 * True: a node has the inode's content as its head. Content that is only an earlier version of a node, or was the head
 * of a node that is gone, is sent to all names.
 */
export function isAtNode(context: Rows & Tree, { id, content, hash, originNode, originVersion }: Inode): boolean {
  if (content !== "clean") return false;
  // The origin is looked at first. Mostly that is enough, without a look at the node of each name.
  const origin = originNode === null ? undefined : context.metadata.nodes.ofNodeId(originNode);
  if (origin?.base != null && origin.base.head === originVersion) return true;
  return hash !== null && context.nodeRows.ofInode(id).some(({ base }) => base?.hash === hash);
}

/** True: the content lives on under another name of the file if this name goes. */
export function hasOtherNames(context: Rows & LocalFiles & Tree, row: NodeRow, inode: Inode | undefined): boolean {
  if (inode !== undefined) return inode.kind !== "folder" && context.metadata.entries.links(inode.id) > 1;
  if (row.seen === null || !("node" in row.seen)) return false;
  const { node } = row.seen;
  const group = groupOf(node);
  if (group === null) return false;
  const match = matchOf(context, node);
  // A file that is open for writing may change at any moment, and the rows may not know of it yet.
  if (match !== undefined && (match.order !== "same" || match.inode.content === "clean")) return true;
  return context.metadata.inodes.ofGroup(group).some((other) => hasAtNode(context, other, node));
}

/** True: the node of one of the inode's names has the content that this node has. */
function hasAtNode({ nodeRows }: Pick<Tree, "nodeRows">, inode: Inode, { contentHash }: Node): boolean {
  return nodeRows.ofInode(inode.id).some(({ base, seen }) => {
    const head = seen !== null && "node" in seen ? seen.node.contentHash : base?.hash;
    return (seen === null || "node" in seen) && head === contentHash;
  });
}

/**
 * A program removed the name here, and another mount wrote to the node. The names that are left show that content, and
 * their nodes get it before this node is deleted.
 */
export function leaveToOthers(context: Rows & LocalFiles & Tree, node: Node): void {
  const other = joinGroup(context, node);
  if (other?.content === "clean" && other.originNode === node.id) context.queue.setInodeDirty(other.id);
}

interface Match {
  readonly inode: Inode;
  readonly order: Exclude<Order, "apart">;
}

/**
 * The inode of the node's group, with the order of the node to it. Newer content does not join an inode that was
 * changed here, or may be. `except`: an inode that does not count.
 */
function matchOf(context: Joining, node: Node, except?: number): Match | undefined {
  const { metadata } = context;
  const group = groupOf(node);
  const matches: Match[] = [];
  for (const inode of group === null ? [] : metadata.inodes.ofGroup(group)) {
    if (inode.id === except || inode.kind !== kindOf(node) || metadata.entries.links(inode.id) === 0) continue;
    const order = orderOf(inode, savedAs(node));
    const mayShowIt = inode.content === "clean" && context.cacheFiles.writersOf(inode) === 0;
    if (order !== "apart" && (order !== "newer" || mayShowIt)) matches.push({ inode, order });
  }
  const having = (order: Order) => matches.find((match) => match.order === order);
  return having("same") ?? having("behind") ?? having("newer");
}

/**
 * The inode that the node's name belongs to, if the node's group has one here. If the node's content is newer, the
 * inode shows it afterwards.
 */
export function joinGroup(context: Rows & LocalFiles & Tree, node: Node, except?: number): Inode | undefined {
  const { inode, order } = matchOf(context, node, except) ?? {};
  if (inode === undefined || order === "behind") return inode;
  if (order === "same") return knowSaves(context, inode, node.attributes.link);
  const content = contentAfter(context, inode, node);
  let { attributes } = content;
  for (const row of context.nodeRows.ofInode(inode.id)) attributes = withUnsent(attributes, row, inode);
  const next = { ...content, attributes, changes: inode.changes + 1 };
  const shown = context.metadata.inodes.replaceKernelNodeId(inode.id, next);
  return gatherNames(context, shown) ?? shown;
}

/** The inode enters the node's group: its content is the node's, or grew from it. */
export function enterGroup({ metadata }: Needs, inode: Inode, node: Node): Inode {
  const linkGroup = groupOf(node);
  const saves = savesOfNode(node);
  if (linkGroup === null || saves === null || inode.linkGroup === linkGroup) return inode;
  const isSame = inode.hash === null || inode.hash === node.contentHash;
  return metadata.inodes.update(inode.id, { linkGroup, saves: isSame ? saves : savesOfContent(inode.hash, saves) });
}

/**
 * Some names of the group came in before the inode was known to belong to it, or were apart from its former content.
 * Their inodes are united with this one. Returns the inode that goes on; undefined if there were no such names.
 */
export function gatherNames(context: Rows & LocalFiles & Tree, inode: Inode): Inode | undefined {
  const { metadata } = context;
  if (inode.linkGroup === null) return undefined;
  let one: Inode | undefined;
  for (const other of metadata.inodes.ofGroup(inode.linkGroup)) {
    const shown = one ?? inode;
    if (other.id === shown.id || other.kind !== shown.kind || other.content !== "clean") continue;
    const order = orderOf(shown, other);
    if ((order !== "same" && order !== "behind") || context.cacheFiles.writersOf(other) > 0) continue;
    // A file that programs have open without a name stays as it is.
    if (metadata.entries.links(other.id) > 0) one = unite(context, shown, other);
  }
  return one;
}

/**
 * Two inodes turn out to be one file, with the content of `shown`. No program can write to `other`, and its content is
 * at the gateway. The inode that goes on keeps its id and its open files. Programs look up the names of the other one
 * again. Returns the inode that goes on.
 */
export function unite(context: Rows & LocalFiles & Tree, shown: Inode, other: Inode): Inode {
  const { metadata } = context;
  if (!goesOnInstead(context, shown, other)) {
    giveNames(context, metadata.entries.ofInode(other.id), other, shown.id);
    return metadata.inodes.get(shown.id) ?? shown;
  }
  const rows = context.nodeRows.ofInode(other.id);
  showAs(context, other, shown, rows);
  giveNames(context, metadata.entries.ofInode(shown.id), shown, other.id);
  const since = earliest(rows);
  if (since !== null) context.queue.setInodeDirty(other.id, since);
  return metadata.inodes.get(other.id) ?? other;
}

/**
 * True: `other` goes on. Content that is only in `shown`, or may change, stays there. Else the inode that programs have
 * open goes on, or else the older one.
 */
function goesOnInstead(context: Rows & LocalFiles, shown: Inode, other: Inode): boolean {
  if (shown.content !== "clean" || context.cacheFiles.writersOf(shown) > 0) return false;
  const isOpen = ({ id }: Inode) =>
    context.metadata.inodes.kernelNodeIds(id).some((kernelNodeId) => context.cacheFiles.has(kernelNodeId));
  const isOtherOpen = isOpen(other);
  return isOtherOpen === isOpen(shown) ? other.id < shown.id : isOtherOpen;
}

/**
 * The inode takes over the content of `shown`. If it has that content already, it keeps its kernel node id, and nothing
 * changes for programs that have it open. `rows`: the rows of its own names.
 */
function showAs({ metadata }: Needs, inode: Inode, shown: Inode, rows: readonly NodeRow[]): void {
  const { kind, size, hash, originNode, originVersion, content, ctime, linkGroup, saves } = shown;
  let { attributes } = shown;
  for (const row of rows) attributes = withUnsent(attributes, row, inode);
  const isSame = inode.content === "clean" && hash !== null && inode.hash === hash;
  if (isSame && inode.kind === kind && inode.attributes.target === shown.attributes.target) {
    const isChanged = !sameValue(attributes, inode.attributes);
    metadata.inodes.update(inode.id, { linkGroup, saves, ...(isChanged ? { attributes, ctime } : {}) });
    return;
  }
  const all = { kind, size, hash, originNode, originVersion, content, ctime, linkGroup, saves, attributes };
  metadata.inodes.replaceKernelNodeId(inode.id, { ...all, changes: inode.changes + 1 });
}

/** The name becomes a name of the inode `to`. Attributes that a program changed, and that were not sent, go with it. */
export function giveName(context: Rows & LocalFiles, entry: Entry, from: Inode, to: InodeId): void {
  giveNames(context, [entry], from, to);
}

/** Gives many names to the inode `to` in one go, so that each of thousands is looked at once. */
function giveNames(context: Rows & LocalFiles, entries: readonly Entry[], from: Inode, to: InodeId): void {
  const { metadata } = context;
  for (const entry of entries) metadata.entries.setInode(entry.id, to);
  keepLinkLease(context, from.id, to);
  context.orphans.renewIfOrphan(from.id);
  const rows = entries.flatMap(({ id }) => metadata.nodes.ofEntry(id) ?? []);
  const since = earliest(rows);
  const inode = metadata.inodes.get(to);
  if (since === null || inode === undefined) return;
  let { attributes } = inode;
  for (const row of rows) attributes = withUnsent(attributes, row, from);
  metadata.inodes.update(to, { attributes });
  context.queue.setInodeDirty(to, since);
}

/** The earliest row time since which one of the rows has something to send. Null: none has. */
function earliest(rows: readonly NodeRow[]): RowTime | null {
  const all = rows.flatMap(({ dirtySince }) => dirtySince ?? []);
  return all.length === 0 ? null : all.reduce(earlierOf);
}

/**
 * The attributes `theirs`, with the unsent changes that were made here under this name. An attribute that was changed
 * elsewhere too is that of `theirs`.
 */
export function withUnsent(theirs: Attributes, { base, dirtySince }: NodeRow, { attributes }: Inode): Attributes {
  if (base === null || dirtySince === null) return theirs;
  const { link: _, ...before } = base.attributes;
  return withTimeOf(theirs, mergeAttributes(before, theirs, attributes, false));
}

/**
 * The inode leaves its group, because its content goes on as a new node. The nodes of the group never had that content.
 * As one more node of the group, the new one would count as behind, and their content would be written over it.
 */
export function leaveGroup({ metadata }: Needs, inode: InodeId): void {
  if (metadata.inodes.get(inode)?.linkGroup != null) metadata.inodes.update(inode, { linkGroup: null });
}

/**
 * Makes a new inode for a node whose group has no inode here that it can join. An inode of the same group that was
 * changed here and has no node yet becomes another file. Otherwise it would count as one more name that is behind, and
 * its content would be lost without a conflict, because no node is compared with it.
 */
export function inodeApart(context: Rows & Host & Tree, node: Node): Inode {
  const { metadata, runtime } = context;
  const group = groupOf(node);
  for (const { id, content } of group === null ? [] : metadata.inodes.ofGroup(group)) {
    const rows = context.nodeRows.ofInode(id);
    const isElsewhere = content === "clean" || rows.some(({ nodeId }) => nodeId !== null);
    if (!isElsewhere) metadata.inodes.update(id, { linkGroup: rows.length > 1 ? runtime.uuid() : null });
  }
  return makeInodeOf(context, node);
}

/**
 * A change came in by one of the inode's names. A link lease begins. When it is over, nodes that are still behind are
 * brought up to date from here.
 */
export function lookLater(
  context: Pick<Rows & Uploads & Host, "metadata" | "runtime" | "activity">,
  inode: InodeId,
): void {
  const { metadata, runtime, activity } = context;
  if (metadata.linkLeases.get(inode) !== undefined || metadata.entries.links(inode) < 2) return;
  // The length is random, so that not all mounts begin at once: the second one finds the work done.
  const endsAt = plus(runtime.now(), Math.round(LINK_LEASE_MS * (1 + runtime.random())));
  metadata.linkLeases.begin(inode, endsAt);
  activity.wake(endsAt);
}

/** Has the plan look at a slice of names of a file whose link lease is over. Returns whether there is more to do. */
export function endLinkLeases({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">): boolean {
  const now = runtime.now();
  return metadata.transaction(() => {
    const lease = metadata.linkLeases.ended(now);
    if (lease === undefined) return false;
    const reached = metadata.nodes.lookAtNames(lease.inode, now, lease.reached, NAMES);
    if (reached === undefined) metadata.linkLeases.done(lease.inode);
    else metadata.linkLeases.reached(lease.inode, reached);
    return true;
  });
}

/** Names go from one inode to another, and the link lease of the first, if any, goes on for the second. */
export function keepLinkLease({ metadata }: Needs, from: InodeId, to: InodeId): void {
  const lease = metadata.linkLeases.get(from);
  if (lease !== undefined) metadata.linkLeases.begin(to, lease.endsAt);
}
