/** The local state of one node, in the terms of the plan. Reads only. */
import type { Attributes } from "../../contract/attributes.ts";
import { linkOfContent, savesOfContent } from "../../contract/saves.ts";
import { EMPTY_HASH } from "../../lib/empty-hash.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Remote, Rows } from "../core/index.ts";
import { mayRefer } from "../host/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Local, LocalContent } from "./plan.ts";

/** The local state of the row whose name is `entry` and whose content is `inode`. */
export function localOf(
  context: Pick<Rows & Remote & Tree, "nodeRows" | "client" | "network" | "metadata">,
  row: NodeRow,
  entry: Entry,
  inode: Inode,
): Local {
  const isRoot = inode.id === ROOT_INODE;
  const group = inode.linkGroup;
  const bytes = contentBytes(context, inode);
  const { hash } = bytes;
  const isKept = group === null ? isLeft(context, row, hash) : hash === null;
  // While the content has no snapshot, the node's link stays the one in base.
  const link = isKept ? row.base?.attributes.link : linkOf(row, inode, hash);
  const { link: _, ...attributes } = inode.attributes;
  return {
    parent: isRoot ? null : (context.nodeRows.nodeIdOfFolder(entry.parent) ?? null),
    name: entry.gatewayName ?? entry.name,
    attributes: link === undefined ? attributes : { ...attributes, link },
    content: inode.kind === "folder" ? null : contentOf(context, inode, bytes),
  };
}

/**
 * The hash and the size of the content that the node is to have. A program gives a symlink no bytes. But a node that
 * clients turn from a file into a symlink, or back, has a target and bytes for a while, or for good. Such bytes are a
 * version like those of a file: requests refer to them, and the node's link must name them.
 */
function contentBytes(context: Pick<Remote, "client" | "network">, inode: Inode): Pick<LocalContent, "hash" | "size"> {
  const { kind, hash, size, content } = inode;
  if (kind === "file") return { hash, size };
  const isVersion = content === "clean" && hash !== null && mayRefer(context, inode);
  return isVersion ? { hash, size } : { hash: EMPTY_HASH, size: 0 };
}

/**
 * True: the node has left its group. Its link means nothing any more, and stays until the node gets other content.
 * Without hashes that cannot be known, and every link stays.
 */
function isLeft({ client }: Pick<Remote, "client">, { base }: NodeRow, hash: string | null): boolean {
  if (!client.features.hashes) return true;
  return base !== null && base.attributes.link?.hash !== base.hash && hash === base.hash;
}

/** The link for the inode's content. The saves before it include the one that the node has so far. */
function linkOf({ base }: NodeRow, { linkGroup: group, saves }: Inode, hash: string | null): Attributes["link"] {
  if (group === null || hash === null) return undefined;
  const before = base?.attributes.link;
  if (base?.hash === hash && before?.group === group && before.hash === hash) return before;
  return linkOfContent(group, hash, saves ?? savesOfContent(hash), before);
}

function contentOf(
  context: Pick<Rows, "metadata">,
  inode: Inode,
  { hash, size }: Pick<LocalContent, "hash" | "size">,
): LocalContent {
  const { content: state, originNode, originVersion } = inode;
  const common = { state, size, originNode, originVersion };
  const isEmpty = size === 0 && hash === EMPTY_HASH;
  return hash !== null && (isEmpty || hasSnapshot(context, inode))
    ? { ...common, hash, isReady: true }
    : { ...common, hash, isReady: false };
}

/**
 * True: there is a snapshot of the newest content. Clean content may still have one, which does not count, because it
 * goes with the attempt that sends it.
 */
function hasSnapshot({ metadata }: Pick<Rows, "metadata">, { id, kind, content, changes }: Inode): boolean {
  return kind === "file" && content === "dirty" && metadata.snapshots.newestOf(id)?.changes === changes;
}
