/** Makes an inode of a node of the gateway, and finds the node's hard link group. */

import type { Node } from "../../contract/resources.ts";
import { savesOfLink } from "../../contract/saves.ts";
import { EMPTY_HASH } from "../../lib/empty-hash.ts";
import { isoToTimeText } from "../../lib/time.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { kindOf } from "../../metadata/nodes.ts";
import type { Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";

/** Creates an inode with the node's content. None of its bytes are here yet. */
export function makeInodeOf(context: Pick<Rows & Tree, "metadata" | "stats">, node: Node): Inode {
  const kind = kindOf(node);
  const { inodes } = context.metadata;
  const atime = isoToTimeText(node.modifiedAt);
  const inode = inodes.create(Object.assign(contentOfNode(node, context.stats.nowText()), { kind, atime }));
  const linkGroup = groupOf(node);
  return linkGroup === null ? inode : inodes.update(inode.id, { linkGroup, saves: savesOfNode(node) });
}

/**
 * The hard link group of the node. Null: it has none, or its content is not the one that its link names, so a client
 * that knows no links wrote it.
 */
export function groupOf(node: Node): string | null {
  const { link } = node.attributes;
  return node.kind === "folder" || link === undefined || link.hash !== node.contentHash ? null : link.group;
}

/** The saves that led to the node's content, as far as its attribute `link` tells. */
export function savesOfNode({ attributes: { link }, contentHash }: Node): readonly string[] | null {
  return link === undefined || link.hash !== contentHash ? null : savesOfLink(link);
}

/** The fields of an inode whose content is exactly the node's head. `ctime`: the time of the adoption, as stored. */
export function contentOfNode(node: Node, ctime: string) {
  const { link: _, ...attributes } = node.attributes;
  return {
    attributes,
    size: node.kind === "folder" ? 0 : node.size,
    hash: node.kind === "folder" ? null : (node.contentHash ?? (node.size === 0 ? EMPTY_HASH : null)),
    originNode: node.kind === "folder" ? null : node.id,
    originVersion: node.head,
    saves: savesOfNode(node),
    content: "clean",
    ctime,
  } as const;
}
