/** Hard links: when one name of an inode goes, the nodes of the other names must hold the whole inode. */
import { sameAttributes } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { LocalFiles, Rows } from "../core/index.ts";

type Needs = Pick<Rows, "metadata">;

/** The node rows of all names of the inode. */
export function rowsOfInode({ metadata }: Needs, inode: InodeId): NodeRow[] {
  return metadata.entries.ofInode(inode).flatMap((entry) => metadata.nodes.ofEntry(entry.id) ?? []);
}

/** True: the node has the content and the attributes of the inode, the attribute `link` aside. */
export function isLike(inode: Inode, { contentHash, attributes }: Pick<Node, "contentHash" | "attributes">): boolean {
  const { link: _, ...own } = attributes;
  return contentHash !== null && contentHash === inode.hash && sameAttributes(own, inode.attributes);
}

/**
 * One name of the inode went, and `row` is its node row. From now on the nodes of the other names must hold the whole
 * inode. If `row` had something to send, the nodes of the other names have it to send now. If the inode had a link
 * lease, this mount does not wait for its end: it brings up to date the nodes that are behind. With neither, no node is
 * behind and none is looked at.
 */
export function keepInOthers(
  context: Pick<Rows & LocalFiles, "metadata" | "cacheFiles" | "queue">,
  inode: InodeId,
  row: NodeRow | undefined,
): void {
  const { linkLeases, nodes } = context.metadata;
  const isLeased = linkLeases.get(inode) !== undefined;
  if (isLeased) linkLeases.done(inode);
  const since = row?.dirtySince ?? null;
  if (since !== null && !nodes.areNamesDirty(inode, since)) context.queue.setInodeDirty(inode, since);
  else if (isLeased) markBehind(context, inode);
  haveFromOthers(context, inode);
}

function markBehind(context: Pick<Rows, "metadata" | "queue">, id: InodeId): void {
  const inode = context.metadata.inodes.get(id);
  if (inode === undefined) return;
  for (const row of rowsOfInode(context, id)) if (!hasAll(row, inode)) context.queue.setNodeDirty(row);
}

/** True: the node holds all that the name shows, as far as this mount knows. */
function hasAll({ base, seen }: NodeRow, inode: Inode): boolean {
  if (base === null || seen !== null) return false;
  const { hash, attributes } = base;
  const isLinked = attributes.link?.group === inode.linkGroup && attributes.link.hash === hash;
  return isLinked && isLike(inode, { contentHash: hash, attributes });
}

/**
 * Makes the origin of the inode a node that still has the version, so that its bytes can be fetched. The node that it
 * came from may be deleted while a name that is left still has its own node. This holds also while a program has the
 * file open for writing: as long as the inode's hash is known, the content is that version, and the missing ranges are
 * the same in both nodes.
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
  // The last one, because names are often removed in order, and then the last name stays longest.
  const { nodeId, base } = rowsOfInode({ metadata }, id).findLast(hasIt) ?? {};
  if (nodeId == null || base?.head == null) return;
  const [node, version] = [nodeId, base.head];
  metadata.inodes.update(id, { originNode: node, originVersion: version });
  cacheFiles.comesFrom(inode.kernelNodeId, { node, version });
}
