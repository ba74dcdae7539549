/**
 * A request that was given up may have arrived all the same. Example: a program opens the file for writing while its
 * bytes are being sent, so the upload is given up. The request's key is kept for a while. It shows that the new state
 * at the gateway is ours, and no conflict. If the node was changed elsewhere since, the journal still tells the key,
 * and the request tells our change from theirs. Where no key is told, a creation is recognised by all that it made.
 */
import type { Node } from "../../contract/resources.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import { type Base, baseOf, born, isAfterBase, type NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Request, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { advance } from "./advance.ts";
import { adoptVersion } from "./content-agreed.ts";
import { isOnlyOurs } from "./echo.ts";
import { effectOf } from "./effect.ts";
import { positionNow } from "./index-watermark.ts";
import { requestRelist } from "./request-relist.ts";

/**
 * Returns true if the change with this key is the effect of a request of ours that was given up. Then base moves to
 * that effect, and newer content stays dirty. A change that follows from the effect (example: the deletion of a file
 * that a program has removed since) is as old as the request, so a drain that began after the request waits for it.
 */
export function recognizeOwn(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  node: Node,
  key: string | null = node.lastKey,
): boolean {
  const { metadata, client, runtime } = context;
  const attempt = key === null ? undefined : metadata.attempts.ofKey(key);
  const row = attempt?.state === "abandoned" ? metadata.nodes.get(attempt.node) : undefined;
  if (attempt === undefined || row === undefined) return false;
  // This news was long under way: base is newer.
  if (row.nodeId === node.id && !isAfterBase(row, node.revision)) return false;
  const known = metadata.nodes.ofNodeId(node.id);
  if (known !== undefined && known.id !== row.id) return false;
  const position = positionNow(context);
  const effect = effectOf(row.base, attempt, { base: baseOf(node, position), lastKey: node.lastKey }, client.features);
  // A request with content has a condition on the replaced head only. So another mount may have moved the node before
  // our request arrived.
  const isOnTop = row.nodeId === node.id && !isOnlyOurs(context, row.base, effect, node);
  const isHidden = node.lastKey !== key || isOnTop;
  const base = isHidden ? effect : baseOf(node, position);
  const isElsewhere = isCreatedElsewhere(context, row, node.id, base);
  metadata.attempts.remove(attempt.id);
  // A second node of one creation is ours only as long as it was not changed elsewhere.
  const isChanged = node.lastKey === null ? !isMadeBy(context, attempt, node) : isHidden;
  if (isElsewhere && isChanged) return false;
  // News of the node that is newer than this state stays news.
  const waiting = metadata.arrivals.get(node.id);
  if (waiting !== undefined && waiting.revision <= node.revision) metadata.arrivals.remove(node.id);
  const due = runtime.now();
  if (isElsewhere) {
    // Two creations of one file were carried out. No name here shows the place of this node any more, so its deletion
    // is queued.
    metadata.nodes.create({ ...born(null, node), dirtySince: attempt.createdAt, due });
    context.activity.wake();
    return true;
  }
  metadata.nodes.update(row.id, {
    nodeId: node.id,
    base,
    seen: isHidden ? { node } : null,
    seenAt: isHidden ? due : null,
    due,
    dirtySince: row.dirtySince ?? attempt.createdAt,
  });
  adoptVersion(context, row, attempt, base, node.id);
  if (row.nodeId === null && row.kind === "folder") existedBefore(context, row);
  advance(context, row.id);
  context.activity.wake();
  return true;
}

/**
 * Recognises the effect of an abandoned creation whose key the gateway does not tell; true if base moves. Programs may
 * have renamed or removed the name here since. As a foreign node, it would come back under its old name. Where the
 * gateway tells no hash, the node is read again with its content (fetch-node.ts). Until then it gets no row, and this
 * returns true.
 */
export function recognizeUnkeyed(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, node: Node): boolean {
  const creations = creationsLike(context, node);
  const own = creations.find(({ request }) => isContentOf(request, node));
  if (own !== undefined) return recognizeOwn(context, node, own.key);
  if (!isContentWanted(creations, node)) return false;
  context.metadata.rereads.add(node.id, node.parentId);
  return true;
}

/** True: the node may be ours, only its content can show that, and the gateway does not tell the hash. */
export function isContentUnknown(context: Rows & Remote & Host, node: Node): boolean {
  return context.metadata.nodes.ofNodeId(node.id) === undefined && isContentWanted(creationsLike(context, node), node);
}

/** Creations that were given up and that may have made this node, by all but its content. */
function creationsLike(context: Rows & Remote & Host, node: Node): readonly Attempt<Request>[] {
  if (context.client.features.isFull || node.parentId === null) return [];
  const creations = context.metadata.attempts.abandonedAt(node.parentId, node.name);
  return creations.filter((attempt) => isLike(context, attempt, node));
}

/** True: the node has the place, attributes and content that the creation gave it, so it was not changed since. */
const isMadeBy = (context: Rows & Remote & Host, attempt: Attempt<Request>, node: Node) =>
  isLike(context, attempt, node) && isContentOf(attempt.request, node);

/** True: the node has the place and attributes that the creation gave it. Its content is not compared. */
function isLike(context: Rows & Remote & Host, attempt: Attempt<Request>, node: Node): boolean {
  const { request } = attempt;
  if ("nodeId" in request || (request.do === "folder") !== (node.kind === "folder")) return false;
  const base = { ...baseOf(node), hash: "hash" in request ? request.hash : null };
  const shown = { base, lastKey: node.lastKey };
  return isOnlyOurs(context, null, effectOf(null, attempt, shown, context.client.features), node);
}

const isContentOf = (request: Request, node: Node) =>
  request.do === "folder" || ("hash" in request && request.hash !== null && request.hash === node.contentHash);

const isContentWanted = (creations: readonly Attempt<Request>[], { contentHash, size }: Node) =>
  contentHash === null &&
  creations.some(({ request }) => "size" in request && request.hash !== null && request.size === size);

/**
 * A folder of ours existed at the gateway for a while before its node was known here. Others may have put nodes into
 * it. The journal has told of them already, while the folder was not known, so the folder is listed again.
 */
function existedBefore(context: Rows & Remote & Uploads & Tree, row: NodeRow): void {
  const inode = context.nodeRows.inodeOf(row);
  if (inode === undefined) return;
  requestRelist(context, inode.id);
  context.activity.expedite(inode.id);
}

/**
 * The key of a request that was given up and whose content the node has. Another change came after it, so the node has
 * that change's key, and the journal has not told of the request yet. Undefined if there is no such request. A request
 * with a condition on another head was not carried out. And if the node was changed only once since base, another mount
 * wrote the same bytes.
 */
export function keyOfContent(
  { metadata, client: { features } }: Pick<Rows & Remote, "metadata" | "client">,
  { id, base }: NodeRow,
  node: Node,
): string | undefined {
  if (node.contentHash === null || node.head === base?.head || node.contentHash === base?.hash) return undefined;
  if (features.isFull && node.revision === (base?.revision ?? 0) + 1) return undefined;
  const isAnother = (request: Request) => features.isFull && "ifHead" in request && request.ifHead !== base?.head;
  const isIt = (request: Request) => "hash" in request && request.hash === node.contentHash && !isAnother(request);
  return metadata.attempts.abandonedOf(id).find(({ request }) => isIt(request))?.key;
}

/**
 * True: another request of the row made its node, or may make it (its answer is not known). An open request for the
 * same place cannot be carried out beside this one, so it does not count.
 */
function isCreatedElsewhere({ metadata }: Rows, row: NodeRow, nodeId: string, made: Base): boolean {
  if (row.nodeId !== null) return row.nodeId !== nodeId;
  const request = metadata.attempts.openOf(row.id)?.request;
  if (request === undefined || !("parent" in request)) return false;
  return request.parent !== made.parent || request.name !== made.name;
}
