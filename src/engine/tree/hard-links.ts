/** The names of one inode: what the nodes of the others have to hold when one of them goes. */
import { sameAttributes } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { type LocalFiles, type Rows, setInodeDirty, setNodeDirty } from "../core/index.ts";
import { comesFrom } from "../files/index.ts";

type Needs = Pick<Rows, "metadata">;

/** The node rows of an inode's names. */
export function rowsOfInode({ metadata }: Needs, inode: InodeId): NodeRow[] {
  return metadata.entries.ofInode(inode).flatMap((entry) => metadata.nodes.ofEntry(entry.id) ?? []);
}

/** The node holds what its other names here show. */
export function isLike(inode: Inode, { contentHash, attributes }: Pick<Node, "contentHash" | "attributes">): boolean {
  const { link: _, ...own } = attributes;
  return contentHash !== null && contentHash === inode.hash && sameAttributes(own, inode.attributes);
}

/**
 * One of its names went, `row` with it: the nodes of the others have to hold all there is of it from now on. Nobody's turn
 * is waited for any more: those that are behind are brought up from here. Who waits for what the row was to send waits for
 * the others. Else none is behind, and none looked at.
 */
export function keepInOthers(
  context: Parameters<typeof setInodeDirty>[0] & Pick<LocalFiles, "cacheFiles">,
  inode: InodeId,
  row: NodeRow | undefined,
): void {
  const { linkLeases, nodes } = context.metadata;
  const isTurn = linkLeases.get(inode) !== undefined;
  if (isTurn) linkLeases.done(inode);
  const since = row?.dirtySince ?? null;
  if (since !== null && !nodes.areNamesDirty(inode, since)) setInodeDirty(context, inode, since);
  else if (isTurn) markBehind(context, inode);
  haveFromOthers(context, inode);
}

function markBehind(context: Parameters<typeof setInodeDirty>[0], id: InodeId): void {
  const inode = context.metadata.inodes.get(id);
  if (inode === undefined) return;
  for (const row of rowsOfInode(context, id)) if (!hasAll(row, inode)) setNodeDirty(context, row);
}

/** As far as is known the node holds what the name shows. */
function hasAll({ base, seen }: NodeRow, inode: Inode): boolean {
  if (base === null || seen !== null) return false;
  const { hash, attributes } = base;
  const isLinked = attributes.link?.group === inode.linkGroup && attributes.link.hash === hash;
  return isLinked && isLike(inode, { contentHash: hash, attributes });
}

/**
 * It is a version of a node that has it still, from which its bytes are had: the one it came from may be deleted
 * before a name that is left gives its own node away. Also while somebody has it open for writing: as long as its
 * hash is known it is that version, and what is missing of it is the same in both.
 */
function haveFromOthers(
  { metadata, cacheFiles }: Pick<Rows & LocalFiles, "metadata" | "cacheFiles">,
  id: InodeId,
): void {
  const inode = metadata.inodes.get(id);
  if (inode === undefined || inode.content === "dirty" || inode.hash === null || inode.originNode === null) return;
  const { entries, nodes } = metadata;
  if (entries.links(id) === 0) return;
  const hasIt = (row: NodeRow | undefined) => row?.base?.hash === inode.hash;
  const origin = nodes.ofNodeId(inode.originNode);
  const isItsName = origin?.entry != null && entries.get(origin.entry)?.inode === id;
  if (isItsName && hasIt(origin)) return;
  // The last one: of names that are removed one after the other it is the one to stay longest.
  const { nodeId, base } = rowsOfInode({ metadata }, id).findLast(hasIt) ?? {};
  if (nodeId == null || base?.head == null) return;
  const [node, version] = [nodeId, base.head];
  metadata.inodes.update(id, { originNode: node, originVersion: version });
  comesFrom({ metadata, cacheFiles }, inode.lineage, { node, version });
}
