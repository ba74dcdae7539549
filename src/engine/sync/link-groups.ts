/**
 * Hard links (attribute `link` = group, hash, saves): every name is a node of its own at the gateway, and
 * the names of one group share an inode here. While its nodes differ an update is under way: whoever
 * made it brings the others up to it, everybody else shows the newest and sends nothing. Which that is, their saves
 * tell (contract/saves); of two that were written at the same time neither is, and they are two files until somebody
 * who knows both makes them one. A node with other content than its link says was written by somebody who knows of no
 * links: it leaves for good.
 *
 * Nodes of a group are told of in any order, so two inodes may turn out to be one file. Then the one that programs know
 * goes on, whichever node was heard of first, and the other's names become names of it: see `unite`.
 */
import { type Attributes, sameValue } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import { type Link, orderOfSaves, savesOfBoth, savesOfContent, savesOfLink } from "../../contract/saves.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { type Host, type LocalFiles, type Rows, setInodeDirty, type Uploads } from "../core/index.ts";
import { handOver, writersOf } from "../files/index.ts";
import { contentOfNode, fileTimeText, groupOf, kindOf, makeInodeOf, rowsOfInode, savesOfNode } from "../tree/index.ts";
import { mergeAttributes, withTimeOf } from "./merge-attributes.ts";

/** Before others bring the nodes of a linked file together: who changed it has his turn first. */
const TURN_MS = 60_000;
/** Marked in one go when it is over. */
const NAMES = 100;

type Needs = Pick<Rows, "metadata">;
type Joining = Pick<Rows & LocalFiles, "metadata" | "cacheFiles">;

/** A name of a linked file that nobody here changed: what its node lacks is for others to bring. */
export function isFollower({ metadata }: Needs, row: NodeRow, inode: Inode): boolean {
  const isUntouched = row.dirtySince === null && row.base !== null && inode.content !== "dirty";
  if (!isUntouched || inode.linkGroup === null || row.base?.attributes.link?.group !== inode.linkGroup) return false;
  return metadata.entries.links(inode.id) > 1;
}

/** What a node has against what its group's other names show. */
export type Order = "same" | "behind" | "newer" | "apart";

type Saved = Pick<Inode, "hash" | "saves">;

const savesOf = ({ hash, saves }: Saved) => saves ?? (hash === null ? [] : savesOfContent(hash));

const savedAs = (node: Node): Saved => ({ hash: node.contentHash, saves: savesOfNode(node) });

/**
 * By the saves that led to either. Apart: each was written by somebody who had not seen the other, so neither may be put
 * in the place of the other, nor shown as if it had been.
 */
export function orderOf(inode: Saved, other: Saved): Order {
  if (inode.hash !== null && inode.hash === other.hash) return "same";
  const order = orderOfSaves(savesOf(inode), savesOf(other));
  // What is being written is no save yet: nobody has seen it.
  return order === "newer" && inode.hash === null ? "apart" : order;
}

/** What the node has against what the file shows; null: it is no name of that, or of no group. */
export function orderInGroup(inode: Inode, node: Node): Order | null {
  if (inode.linkGroup === null || groupOf(node) !== inode.linkGroup) return null;
  return orderOf(inode, savedAs(node));
}

/** What an inode is when it shows the node's content in the place of its own. */
export function contentAfter(context: Pick<Host, "runtime">, inode: Inode, node: Node) {
  return { ...contentOfNode(node, fileTimeText(context)), saves: savesInPlace(inode, node) };
}

function savesInPlace(inode: Inode, node: Node): readonly string[] | null {
  const theirs = savesOfNode(node);
  if (inode.linkGroup === null) return theirs;
  // Written by somebody who knows of no links; shown by all names, it is theirs from here on.
  if (theirs === null) return node.contentHash === null ? null : savesOfContent(node.contentHash, savesOf(inode));
  const isNewer = groupOf(node) === inode.linkGroup && orderOf(inode, savedAs(node)) === "newer";
  return isNewer ? savesOfBoth(theirs, savesOf(inode)) : theirs;
}

/** A node has what is shown, which may have come about in yet another way: what came before in either is behind. */
export function knowSaves({ metadata }: Needs, inode: Inode, link: Link | undefined): Inode {
  if (link === undefined || link.group !== inode.linkGroup || link.hash !== inode.hash) return inode;
  const [own, theirs] = [savesOf(inode), savesOfLink(link)];
  const isTheirsLater = own[0] !== undefined && theirs.includes(own[0]);
  const saves = isTheirsLater ? savesOfBoth(theirs, own) : savesOfBoth(own, theirs);
  return sameValue(saves, own) ? inode : metadata.inodes.update(inode.id, { saves });
}

/** A node has its content. What is only a former version of one, or was the head of one that is gone, is sent to all names. */
export function isAtNode(context: Needs, { id, content, hash, originNode, originVersion }: Inode): boolean {
  if (content !== "clean") return false;
  // Asked first: this alone tells mostly, without a look at thousands for each.
  const origin = originNode === null ? undefined : context.metadata.nodes.ofNodeId(originNode);
  if (origin?.base != null && origin.base.head === originVersion) return true;
  return hash !== null && rowsOfInode(context, id).some(({ base }) => base?.hash === hash);
}

/** What the node's content lives on under, should this name of it go. */
export function hasOtherNames(context: Joining, row: NodeRow, inode: Inode | undefined): boolean {
  if (inode !== undefined) return inode.kind !== "folder" && context.metadata.entries.links(inode.id) > 1;
  if (row.seen === null || !("node" in row.seen)) return false;
  const { node } = row.seen;
  const group = groupOf(node);
  if (group === null) return false;
  const place = placeOf(context, node);
  // What is merely open for writing may be changed at any moment, of which the rows may not know yet.
  if (place !== undefined && (place.order !== "same" || place.inode.content === "clean")) return true;
  return context.metadata.inodes.ofGroup(group).some((other) => hasAtNode(context, other, node));
}

/** One of its names has at its node what this node has. */
function hasAtNode({ metadata }: Needs, inode: Inode, { contentHash }: Node): boolean {
  return rowsOfInode({ metadata }, inode.id).some(({ base, seen }) => {
    const head = seen !== null && "node" in seen ? seen.node.contentHash : base?.hash;
    return (seen === null || "node" in seen) && head === contentHash;
  });
}

/** It was removed here, written elsewhere: the names that are left show that, and their nodes get it before it goes. */
export function leaveToOthers(context: Rows & LocalFiles & Uploads & Host, node: Node): void {
  const other = joinGroup(context, node);
  if (other?.content === "clean" && other.originNode === node.id) setInodeDirty(context, other.id);
}

interface Place {
  readonly inode: Inode;
  readonly order: Exclude<Order, "apart">;
}

/** What was changed here meanwhile, or may be, is joined only by a node it was made from. */
function placeOf(context: Joining, node: Node, except?: number): Place | undefined {
  const { metadata } = context;
  const group = groupOf(node);
  const places: Place[] = [];
  for (const inode of group === null ? [] : metadata.inodes.ofGroup(group)) {
    if (inode.id === except || inode.kind !== kindOf(node) || metadata.entries.links(inode.id) === 0) continue;
    const order = orderOf(inode, savedAs(node));
    const mayShowIt = inode.content === "clean" && writersOf(context, inode) === 0;
    if (order !== "apart" && (order !== "newer" || mayShowIt)) places.push({ inode, order });
  }
  const having = (order: Order) => places.find((place) => place.order === order);
  return having("same") ?? having("behind") ?? having("newer");
}

/** The inode the node is a name of, if its group has one here. Shows the node's content afterwards if that is newer. */
export function joinGroup(context: Rows & LocalFiles & Uploads & Host, node: Node, except?: number): Inode | undefined {
  const { inode, order } = placeOf(context, node, except) ?? {};
  if (inode === undefined || order === "behind") return inode;
  if (order === "same") return knowSaves(context, inode, node.attributes.link);
  const content = contentAfter(context, inode, node);
  let { attributes } = content;
  for (const row of rowsOfInode(context, inode.id)) attributes = withUnsent(attributes, row, inode);
  const next = { ...content, attributes, changes: inode.changes + 1 };
  const shown = context.metadata.inodes.replaceKernelNodeId(inode.id, next);
  return gatherNames(context, shown) ?? shown;
}

/** It turns out to be a name of this group, as the node is: what it has was made of what the node has. */
export function enterGroup({ metadata }: Needs, inode: Inode, node: Node): Inode {
  const linkGroup = groupOf(node);
  const saves = savesOfNode(node);
  if (linkGroup === null || saves === null || inode.linkGroup === linkGroup) return inode;
  const isSame = inode.hash === null || inode.hash === node.contentHash;
  return metadata.inodes.update(inode.id, { linkGroup, saves: isSame ? saves : savesOfContent(inode.hash, saves) });
}

/**
 * The group's names that came in before the inode was known to belong to it, or were apart from what it showed, become
 * names of the same inode as its own: of that one. Undefined if there were none.
 */
export function gatherNames(context: Rows & LocalFiles & Uploads & Host, inode: Inode): Inode | undefined {
  const { metadata } = context;
  if (inode.linkGroup === null) return undefined;
  let one: Inode | undefined;
  for (const other of metadata.inodes.ofGroup(inode.linkGroup)) {
    const shown = one ?? inode;
    if (other.id === shown.id || other.kind !== shown.kind || other.content !== "clean") continue;
    const order = orderOf(shown, other);
    if ((order !== "same" && order !== "behind") || writersOf(context, other) > 0) continue;
    // What programs have open without a name stays as it is.
    if (metadata.entries.links(other.id) > 0) one = unite(context, shown, other);
  }
  return one;
}

/**
 * Two inodes turn out to be one file, which shows what the first does; nobody can write to the other, and nothing of its
 * content is only there. The one that goes on keeps its number, and what is open of it; of the other programs look the
 * names up again.
 */
export function unite(context: Rows & LocalFiles & Uploads & Host, shown: Inode, other: Inode): Inode {
  const { metadata } = context;
  if (!goesOnInstead(context, shown, other)) {
    giveNames(context, metadata.entries.ofInode(other.id), other, shown.id);
    return metadata.inodes.get(shown.id) ?? shown;
  }
  const rows = rowsOfInode(context, other.id);
  showAs(context, other, shown, rows);
  giveNames(context, metadata.entries.ofInode(shown.id), shown, other.id);
  const since = earliest(rows);
  if (since !== null) setInodeDirty(context, other.id, since);
  return metadata.inodes.get(other.id) ?? other;
}

/** What is only here, or may change, stays where it is; else the one that programs have open goes on, or the older. */
function goesOnInstead(context: Rows & LocalFiles, shown: Inode, other: Inode): boolean {
  if (shown.content !== "clean" || writersOf(context, shown) > 0) return false;
  const isOpen = ({ id }: Inode) =>
    context.metadata.inodes.lineages(id).some((lineage) => context.cacheFiles.has(lineage));
  const isOtherOpen = isOpen(other);
  return isOtherOpen === isOpen(shown) ? other.id < shown.id : isOtherOpen;
}

/** Content that it has already keeps its lineage: nothing changes for who has it open. `rows`: its own. */
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

/** The name is one of another inode's from here on. What a program changed of its attributes, and was not sent, goes with it. */
export function giveName(context: Rows & Uploads & Host, entry: Entry, from: Inode, to: InodeId): void {
  giveNames(context, [entry], from, to);
}

/** Of thousands of names each is looked at once. */
function giveNames(context: Rows & Uploads & Host, entries: readonly Entry[], from: Inode, to: InodeId): void {
  const { metadata } = context;
  for (const entry of entries) metadata.entries.setInode(entry.id, to);
  keepLinkLease(context, from.id, to);
  handOver(context, from.id);
  const rows = entries.flatMap(({ id }) => metadata.nodes.ofEntry(id) ?? []);
  const since = earliest(rows);
  const inode = metadata.inodes.get(to);
  if (since === null || inode === undefined) return;
  let { attributes } = inode;
  for (const row of rows) attributes = withUnsent(attributes, row, from);
  metadata.inodes.update(to, { attributes });
  setInodeDirty(context, to, since);
}

/** Since when one of them has something to send. */
function earliest(rows: readonly NodeRow[]): number | null {
  const all = rows.flatMap(({ dirtySince }) => dirtySince ?? []);
  return all.length === 0 ? null : all.reduce((first, since) => Math.min(first, since));
}

/** What was changed here of a name's attributes, and was not sent, stays, unless they were changed elsewhere too. */
export function withUnsent(theirs: Attributes, { base, dirtySince }: NodeRow, { attributes }: Inode): Attributes {
  if (base === null || dirtySince === null) return theirs;
  const { link: _, ...before } = base.attributes;
  return withTimeOf(theirs, mergeAttributes(before, theirs, attributes, false));
}

/**
 * Its content goes on as a new node's. The nodes of the group, wherever their names are, never had it: as one
 * more of them it would be taken for one that is behind, and written over with theirs.
 */
export function leaveGroup({ metadata }: Needs, inode: InodeId): void {
  if (metadata.inodes.get(inode)?.linkGroup != null) metadata.inodes.update(inode, { linkGroup: null });
}

/**
 * A new inode for a node that is no name of any here. What was changed here of the same group and has no node yet goes on
 * as another file: none of the group's nodes is asked whether it may have that, so nobody would be told of both, and as
 * one more of them it would be taken for one that is behind.
 */
export function inodeApart(context: Rows & Host, node: Node): Inode {
  const { metadata, runtime } = context;
  const group = groupOf(node);
  for (const { id, content } of group === null ? [] : metadata.inodes.ofGroup(group)) {
    const rows = rowsOfInode(context, id);
    const isElsewhere = content === "clean" || rows.some(({ nodeId }) => nodeId !== null);
    if (!isElsewhere) metadata.inodes.update(id, { linkGroup: rows.length > 1 ? runtime.uuid() : null });
  }
  return makeInodeOf(context, node);
}

/** Something came in by one of its names. Nodes that are still behind when this time is over are brought up from here. */
export function lookLater(context: Parameters<typeof setInodeDirty>[0], inode: InodeId): void {
  const { metadata, runtime, activity } = context;
  if (metadata.linkLeases.get(inode) !== undefined || metadata.entries.links(inode) < 2) return;
  // Not all mounts at once: the second finds it done.
  const endsAt = runtime.now() + Math.round(TURN_MS * (1 + runtime.random()));
  metadata.linkLeases.begin(inode, endsAt);
  activity.wake(endsAt);
}

/** Of the files whose turn is over, one slice of names is to be looked at. True when there is more to do. */
export function endLinkLeases({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">): boolean {
  const now = runtime.now();
  return metadata.transaction(() => {
    const turn = metadata.linkLeases.ended(now);
    if (turn === undefined) return false;
    const reached = metadata.nodes.lookAtNames(turn.inode, now, turn.reached, NAMES);
    if (reached === undefined) metadata.linkLeases.done(turn.inode);
    else metadata.linkLeases.reached(turn.inode, reached);
    return true;
  });
}

/** A name that leaves an inode is waited for as it was there. */
export function keepLinkLease({ metadata }: Needs, from: InodeId, to: InodeId): void {
  const turn = metadata.linkLeases.get(from);
  if (turn !== undefined) metadata.linkLeases.begin(to, turn.endsAt);
}
