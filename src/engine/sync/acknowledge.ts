/**
 * What an answer of the gateway means for the rows: an acknowledgement moves base, a refusal tells
 * something new or parks the item. An attempt outlives its entry: its answer moves the base of its
 * node, whichever entry carries it by then, if any. Each function is one transaction and never waits.
 */
import type { RemoteError } from "../../client/errors.ts";
import { sameValue } from "../../contract/attributes.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { Entry } from "../../metadata/entries.ts";
import { baseOf, type NodeRow, type Seen } from "../../metadata/nodes.ts";
import {
  areCreationsKeyed,
  type Context,
  enqueue,
  type Host,
  isKeyed,
  type LocalFiles,
  noteAcknowledged,
  noteRollback,
  type Remote,
  type Request,
  type Rows,
  scopesOf,
  type Uploads,
} from "../core/index.ts";
import { comesFrom, dropSnapshot, handOver, writersOf } from "../files/index.ts";
import { retryAfterOf } from "../host/index.ts";
import { dropRow, folderOfNode, inodeOfRow, kindOf, nodeIdOfFolder } from "../tree/index.ts";
import { addTombstone, advance, leftPlace } from "./advance.ts";
import { placeArrival } from "./arrival.ts";
import { adoptVersion } from "./content-agreed.ts";
import { afterWrite, isOnlyOurs, supersedeState, withRevision } from "./echo.ts";
import { effectOf } from "./effect.ts";
import { isCoveredByIndex, noteWritten, positionNow } from "./index-watermark.ts";
import { enterGroup, joinGroup, leaveGroup, lookLater } from "./link-groups.ts";
import { removedFolderIsNotEmpty } from "./list-removed-folder.ts";
import { moveToConflictName } from "./name-conflicts.ts";
import { isStaleRead, observeNode, revisionOf } from "./observe.ts";
import { recognizeOwn, recognizeUnkeyed } from "./own-writes.ts";
import { requestRelist } from "./request-relist.ts";

type Sent = Attempt<Request>;

/** After a refusal that says the world is not as thought: time for it to be looked at again. */
const LOOK_AGAIN_MS = 1_000;
/** After a refusal for want of room, or of a scope that only this request needs. */
const LATER_MS = 10_000;

/** The request was carried out; `node` is the node after it, in the journal at `position` (0: not told). */
export function acknowledge(context: Context, attempt: Sent, told: Node, toldPosition: number): void {
  const { metadata, client } = context;
  metadata.transaction(() => {
    const position = positionNow(context, toldPosition);
    noteWritten(context, position);
    const known = metadata.nodes.get(attempt.node);
    if (known === undefined || metadata.attempts.ofKey(attempt.key) === undefined) {
      // Its row is no longer this node's: what the answer tells is heard as from anybody.
      if (attempt.request.do !== "delete") observeNode(context, told);
      return;
    }
    const row = known.nodeId === null || known.nodeId === told.id ? known : leaveNode(context, known);
    const node = afterWrite(context, row, told);
    const isDeletion = attempt.request.do === "delete";
    // Who repeats a request gets its first answer, however old.
    if (attempt.tries === 0) {
      noteAcknowledged(context, told, { isDeleted: isDeletion, isContent: "size" in attempt.request });
    }
    if (isDeletion) return acknowledgeDeletion(context, row, attempt, node.revision, position);

    if (isSomebodysNow(context, row, node.id)) {
      closeAttempt(context, attempt);
      dropRow(context, row.id);
      context.quota.grew(attempt, node.size);
      metadata.rereads.add(node.id);
      context.activity.progressed();
      return;
    }
    absorbStranger(context, row, node.id);
    const shown = baseOf(node, position);
    const effect = effectOf(row.base, attempt, shown, client.features);
    const isOurs = isOnlyOurs(context, row.base, effect, node);
    // A gateway that tells no hashes has what was sent.
    const base = isOurs ? { ...shown, hash: shown.hash ?? effect.hash } : effect;
    const isSeenOlder = row.seen === null || (!("deleted" in row.seen) && row.seen.node.revision <= node.revision);
    const seen = deletedSince(context, node) ?? (isSeenOlder ? (isOurs ? null : { node }) : row.seen);
    metadata.nodes.update(row.id, { nodeId: node.id, base, seen, parked: null });
    supersedeState(context, node.id, row.base, base);
    context.quota.grew(attempt, base.size - (row.base?.size ?? 0));
    metadata.rereads.found(node.id);
    // Somebody's change besides ours, or an answer that is wrong: the node itself tells.
    if (!isOurs) metadata.rereads.add(node.id);
    // A repeated request gets its first answer, however old: what was heard of the node since then is news.
    const waiting = metadata.arrivals.get(node.id);
    if (waiting !== undefined && waiting.revision <= node.revision) metadata.arrivals.remove(node.id);
    if (row.base === null && position <= metadata.settings.getNumber("cursor")) metadata.rereads.add(node.id);
    adoptVersion(context, row, attempt, base, node.id);
    closeAttempt(context, attempt);
    if (attempt.request.do === "exchange") otherHasMoved(context, attempt.request, position);
    if (row.base === null && row.kind === "folder") folderIsCreated(context, row, position);
    if (row.base !== null && (row.base.parent !== base.parent || row.base.name !== base.name)) leftPlace(context, row);
    advance(context, row.id);
    context.activity.progressed();
    context.activity.wake();
  });
}

/** An answer that was long on its way: the journal has told of the node's deletion meanwhile. */
function deletedSince({ metadata }: Rows, node: Node): Seen | undefined {
  const tombstone = metadata.tombstones.get(node.id);
  if (tombstone === undefined || tombstone.revision <= node.revision) return undefined;
  const { revision, position } = tombstone;
  return { deleted: true, revision, ...(position === null ? {} : { position }) };
}

/** An earlier birth had arrived, and the node it made has left its place again: this answer tells of another one. */
function leaveNode(context: Rows & Remote & Host, row: NodeRow): NodeRow {
  if (row.seen !== null && "deleted" in row.seen) addTombstone(context, row);
  else if (row.nodeId !== null) context.metadata.rereads.add(row.nodeId);
  return context.metadata.nodes.update(row.id, { nodeId: null, base: null, seen: null, seenAt: null });
}

/**
 * Removed here before we had the answer to its birth, and somebody has changed the node, so that it came in
 * as a stranger's: programs saw both names and removed one of them, or have changed the other since. Of one
 * that came in after the removal nobody has said that it is to stay.
 */
function isSomebodysNow({ metadata }: Rows, row: NodeRow, nodeId: string): boolean {
  const stranger = metadata.nodes.ofNodeId(nodeId);
  if (row.entry !== null || stranger === undefined || stranger.id === row.id || stranger.entry === null) return false;
  const isChangedHere = stranger.dirtySince !== null || (stranger.base?.position ?? 0) > 0;
  return isChangedHere || stranger.changedAt <= (row.leftAt ?? Number.POSITIVE_INFINITY);
}

/** The same, and it is still here: the two are one. */
function absorbStranger(context: Rows & LocalFiles & Uploads & Host, row: NodeRow, nodeId: string): void {
  const { metadata } = context;
  const stranger = metadata.nodes.ofNodeId(nodeId);
  if (stranger === undefined || stranger.id === row.id) return;
  // What it knew that is newer is read again.
  metadata.rereads.add(nodeId);
  const entry = stranger.entry === null ? undefined : metadata.entries.get(stranger.entry);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  const isUsed =
    inode !== undefined &&
    (stranger.dirtySince !== null || writersOf(context, inode) > 0 || !metadata.entries.isEmpty(inode.id));
  if (isUsed) {
    const now = context.runtime.now();
    // It was about the node, which is the other row's; whatever it did is heard from there.
    const attempt = metadata.attempts.openOf(stranger.id);
    if (attempt !== undefined) {
      metadata.attempts.remove(attempt.id);
      context.sending.get(attempt.id)?.();
    }
    metadata.nodes.update(stranger.id, {
      nodeId: null,
      base: null,
      seen: null,
      seenAt: null,
      dirtySince: stranger.dirtySince ?? now,
      due: now,
    });
    if (metadata.entries.links(inode.id) === 1) leaveGroup(context, inode.id);
    return;
  }
  metadata.attempts.removeAllOf(stranger.id);
  metadata.nodes.remove(stranger.id);
  if (entry === undefined) return;
  metadata.entries.remove(entry.id);
  handOver(context, entry.inode);
}

/** The answer to an exchange tells of the one node only; the other is where that was, in the same change. */
function otherHasMoved(context: Context, request: Extract<Request, { do: "exchange" }>, position: number): void {
  const { metadata } = context;
  const row = metadata.nodes.ofNodeId(request.with);
  if (row?.base?.revision !== request.withRevision) {
    // What was heard of it since tells more, or it has to be asked for.
    metadata.rereads.add(request.with);
    enqueue(context, row);
    return;
  }
  const revision = request.withRevision + 1;
  const base = { ...row.base, parent: request.withParent, name: request.withName, revision, position };
  const isSeenOlder = revisionOf(row.seen) <= revision;
  metadata.nodes.update(row.id, { base, seen: isSeenOlder ? null : row.seen });
  leftPlace(context, row);
  advance(context, row.id);
}

function closeAttempt(
  context: Rows & LocalFiles & Uploads & Host,
  attempt: Sent,
  how: "remove" | "abandon" = "remove",
): void {
  const { attempts } = context.metadata;
  if (how === "remove") attempts.remove(attempt.id);
  else attempts.abandon(attempt.id, context.runtime.now());
  const { generation: snapshot } = attempt;
  // Another name of the same inode may still be sending it.
  if (snapshot !== null && attempts.ofSnapshot(snapshot).length === 0) dropSnapshot(context, snapshot);
}

/**
 * Refused for what may change: should it have been sent before without an answer, that sending may
 * still arrive, when what stood in the way is gone, or has arrived: this refusal need not be about what
 * it did. Its key will say that it was ours; a deletion is remembered for what must not need its node.
 */
function closeRefused(context: Rows & LocalFiles & Remote & Uploads & Host, attempt: Sent, error: RemoteError): void {
  const { request, tries } = attempt;
  const isLast = error.code === "changed" || tries === 0;
  closeAttempt(context, attempt, isLast ? "remove" : "abandon");
  if (isLast || "nodeId" in request || areCreationsKeyed(context.client.features)) return;
  // What was told of its place meanwhile was left to its answer (observe.ts), and is not told again.
  const folder = folderOfNode(context, request.parent);
  if (folder !== undefined) requestRelist(context, folder);
}

/**
 * What waits in it may go now. Only what we put there can be in it, but for what the journal told of a folder nobody
 * here knew yet, which was passed over. It stays known: a folder made here must be listed also while nobody answers.
 */
function folderIsCreated(context: Rows & Remote & Uploads, row: NodeRow, position: number): void {
  const inode = inodeOfRow(context, row);
  if (inode === undefined) return;
  if (isCoveredByIndex(context, position)) requestRelist(context, inode.id);
  context.activity.expedite(inode.id);
}

function acknowledgeDeletion(context: Context, row: NodeRow, attempt: Sent, revision: number, position: number): void {
  const { metadata } = context;
  closeAttempt(context, attempt);
  const seen: Seen = { deleted: true, revision, ...(position < 0 ? {} : { position }) };
  // Where its answer was lost, the journal may have told of it, and will not tell again.
  const isTold = position < 0 && row.seen !== null && "deleted" in row.seen;
  addTombstone(context, isTold ? row : { ...row, seen });
  context.quota.grew(attempt, -(row.base?.size ?? 0));
  if (row.entry === null) {
    dropRow(context, row.id);
  } else {
    // The name was made again while the deletion was under way: what is there now is a new node.
    metadata.nodes.update(row.id, { nodeId: null, base: null, seen: null, seenAt: null });
    advance(context, row.id);
  }
  leftPlace(context, row);
  // A repeated request gets its first answer, however old: the node may have been restored since.
  if (row.seen !== null && "node" in row.seen) observeNode(context, row.seen.node);
  context.activity.progressed();
  context.activity.wake();
}

/** What is to be done about a request that failed. `retry`: the same request again, later. */
export type Verdict = { readonly retry: true; readonly afterMs?: number } | { readonly retry: false };

export function refused(context: Context, attempt: Sent, error: RemoteError): Verdict {
  const { metadata } = context;
  return metadata.transaction((): Verdict => {
    const row = metadata.nodes.get(attempt.node);
    if (row === undefined || metadata.attempts.openOf(row.id)?.id !== attempt.id) return { retry: false };
    if (error.isTransient || error.code === "aborted" || error.code === "unauthorized") return { retry: true };
    if (error.code === "throttled") {
      const asked = retryAfterOf(error);
      // "At once" is said where less than a second is meant, or by another clock: each answer would be the next request.
      return { retry: true, ...(asked === undefined ? {} : { afterMs: Math.max(asked, LOOK_AGAIN_MS) }) };
    }
    const { node: told } = error.details;
    const node = told?.id === row.nodeId && told?.kind !== row.kind ? undefined : told;
    const isOther = attempt.request.do === "exchange" && node?.id === attempt.request.with;
    const isOurs = node?.lastKey === attempt.key && !isOther;
    const mayBeOurs = !isOurs && node !== undefined && mayBeEarlierTry(context, attempt, error);
    // An old list: what is at the name by now it does not show.
    if (mayBeOurs && isStaleRead(context, withRevision(context, node, "others"))) {
      return { retry: true, afterMs: LOOK_AGAIN_MS };
    }
    if (isOurs || (mayBeOurs && isEarlierTry(context, row, attempt, node))) {
      acknowledge(context, attempt, node, 0);
      return { retry: false };
    }
    closeRefused(context, attempt, error);
    if (node !== undefined && isOfOtherPast(context, row, node)) noteRollback(context);
    if (node?.lastKey != null && recognizeOwn(context, node)) return { retry: false };
    if (node !== undefined && takeFromTheWay(context, row, node)) return { retry: false };
    metadata.nodes.update(row.id, { due: context.runtime.now() });
    tellApart(context, row, attempt.request, error, node);
    context.activity.wake();
    context.activity.progressed();
    return { retry: false };
  });
}

/** As it is now the node is older than what the gateway had acknowledged before it was asked: its data were set back. */
function isOfOtherPast({ client }: Remote, { nodeId, base }: NodeRow, node: Node): boolean {
  const isKnown = client.features.revisions && client.features.journal;
  return isKnown && node.id === nodeId && base !== null && node.revision < base.revision;
}

/** What is in the way was made by a birth of ours that was given up, this one or another, or is asked whether it was. */
function takeFromTheWay(context: Context, row: NodeRow, told: Node): boolean {
  const node = withRevision(context, told, "others");
  if (isStaleRead(context, node)) return false;
  context.metadata.nodes.update(row.id, { due: context.runtime.now() + LOOK_AGAIN_MS });
  return recognizeUnkeyed(context, node);
}

/** Asked for before without an answer or a key: what that made may be what is in the way now. */
function mayBeEarlierTry({ client }: Remote, { request, tries }: Sent, { code }: RemoteError): boolean {
  return tries > 0 && !isKeyed(request, client.features) && (code === "conflict" || code === "changed");
}

/**
 * Of one that may be: it is, though no listing showed it yet. A file by its content: taken for somebody's, newer
 * content here would be in conflict with our own. A folder only if it was removed here since: taken for
 * somebody's it would come back for good.
 */
function isEarlierTry({ metadata }: Rows, row: NodeRow, { request }: Sent, node: Node): boolean {
  if (metadata.nodes.ofNodeId(node.id)?.id !== (row.nodeId === null ? undefined : row.id)) return false;
  if (request.do === "folder") return node.kind === "folder" && row.entry === null;
  return "hash" in request && request.hash !== null && node.contentHash === request.hash;
}

/** The request certainly had no effect. What does the refusal tell? */
function tellApart(context: Context, row: NodeRow, request: Request, error: RemoteError, node: Node | undefined): void {
  const isCondition = error.code === "changed" || error.code === "conflict";
  const { scope, grant } = error.details;
  const isForbidden = error.code === "forbidden" && (scope !== undefined || grant !== undefined);
  if ("copyOf" in request && !isCondition && !isForbidden && error.code !== "overQuota") {
    // It may be the version that cannot be had like this: its bytes can be sent whatever it is.
    context.network.cannotRefer(request.version);
    lookAgainLater(context, row, "parent" in request ? request.parent : undefined);
  } else if (request.do === "delete" && error.code === "conflict") {
    removedFolderIsNotEmpty(context, row);
  } else if (isCondition && node !== undefined) {
    if ("parent" in request && node.id !== row.nodeId) nameIsTaken(context, row, node);
    else if (node.revision === ("ifRevision" in request ? request.ifRevision : row.base?.revision))
      lookAgainLater(context, row);
    else {
      observeNode(context, node);
      // Where only a read by id is believed, that comes first.
      if (context.metadata.nodes.get(row.id)?.seen === null) lookAgainLater(context, row);
    }
  } else if (isCondition) {
    lookAgainLater(context, row);
  } else if (error.code === "notFound" || (error.code === "invalid" && isMove(request))) {
    // Of one that has gone it is heard; should it be the request that the gateway does not know, there is another way.
    if (request.do === "exchange") context.network.cannotExchange();
    // A folder is gone, or (400) is by now inside what should move into it: the world is not as thought.
    const parent = "parent" in request ? request.parent : undefined;
    lookAgainLater(context, row, request.do === "exchange" ? request.with : parent);
  } else if (error.code === "overQuota" && error.details.excess !== undefined) {
    // The plan makes it wait now. Should it not, for what is known here is not what the gateway counts: not at once.
    context.quota.refused(error.details.excess);
    context.metadata.nodes.update(row.id, { due: context.runtime.now() + LATER_MS });
  } else if (!isForbidden) {
    // A missing scope makes the plan wait, and only for what needs it, a role all changes; anything else is about this node.
    park(context, row, error);
  } else if (!scopesOf(request.do).some((needed) => needed === scope)) {
    // The plan knows nothing of it: of a role, of looking at the node first, or of what this gateway wants besides.
    context.metadata.nodes.update(row.id, { due: context.runtime.now() + LATER_MS });
  }
}

const isMove = (request: Request) =>
  request.do === "exchange" || (request.do === "patch" && request.parent !== undefined);

/** `other`: what else it is about. While one of the two is not to be found, ever more seldom. */
function lookAgainLater(context: Rows & Host, row: NodeRow, other?: string): void {
  const { rereads, nodes } = context.metadata;
  const now = context.runtime.now();
  let wait = LOOK_AGAIN_MS;
  for (const id of [row.nodeId, other]) {
    if (id == null) continue;
    rereads.add(id);
    wait = Math.max(wait, now - (rereads.missingSince(id) ?? now));
  }
  nodes.update(row.id, { due: now + Math.min(wait, SETTLE_MS) });
}

function park(context: Rows & Host, row: NodeRow, error: RemoteError): void {
  // Removed while its birth was under way: nobody wants it any more, and nothing of it is there.
  if (row.entry === null && row.nodeId === null) return;
  context.log.error({ row: row.id, nodeId: row.nodeId, err: error }, "refused by the gateway, kept here");
  context.metadata.nodes.update(row.id, { parked: error.message, due: null });
}

/** The name this row wanted belongs to another node. */
function nameIsTaken(context: Context, row: NodeRow, told: Node): void {
  const { metadata } = context;
  // The answer may be older than what was heard of the node meanwhile.
  const waiting = metadata.arrivals.get(told.id);
  const node = waiting !== undefined && waiting.revision > told.revision ? waiting : told;
  if (isStaleRead(context, node) || metadata.nodes.ofNodeId(node.id) !== undefined) {
    // A known node is still, or again, there: it has to leave first, or has news. One that is gone was there once.
    observeNode(context, node);
    metadata.nodes.update(row.id, { due: context.runtime.now() + LOOK_AGAIN_MS });
    return;
  }
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  const isThere =
    entry !== undefined &&
    (entry.gatewayName ?? entry.name) === node.name &&
    nodeIdOfFolder(context, entry.parent) === node.parentId;
  if (entry !== undefined && isThere && row.nodeId === null && join(context, row, entry, node)) return;
  if (entry !== undefined && isThere) {
    moveToConflictName(context, entry);
    metadata.afterCommit(context.activity.conflicted);
  }
  placeArrival(context, node);
}

/** Made here and there: the same thing becomes one node. */
function join(context: Context, row: NodeRow, entry: Entry, node: Node): boolean {
  const { metadata } = context;
  const inode = metadata.inodes.get(entry.inode);
  if (inode === undefined || inode.kind !== kindOf(node)) return false;
  const isFolder = inode.kind === "folder";
  const isSame = isFolder || (inode.content !== "open" && inode.hash !== null && inode.hash === node.contentHash);
  if (!isSame || inode.attributes.target !== node.attributes.target) return false;
  const { link: _, ...remote } = node.attributes;
  const attributes = { ...inode.attributes, ...remote };
  const group = joinGroup(context, node);
  const isAlone = metadata.entries.links(inode.id) === 1 && writersOf(context, inode) === 0;
  if (group !== undefined && group.id !== inode.id && isAlone) {
    metadata.entries.setInode(entry.id, group.id);
    handOver(context, inode.id);
  }
  metadata.inodes.update(inode.id, {
    ...(sameValue(attributes, inode.attributes) ? {} : { attributes }),
    ...(isFolder ? { listed: null } : { content: "clean", originNode: node.id, originVersion: node.head }),
  });
  const isItsOwn = metadata.entries.get(entry.id)?.inode === inode.id;
  if (isItsOwn && inode.linkGroup === null) enterGroup(context, inode, node);
  if (node.head !== null) comesFrom(context, inode.lineage, { node: node.id, version: node.head });
  const position = positionNow(context, 0);
  metadata.nodes.update(row.id, { nodeId: node.id, base: baseOf(node, position), seen: null, seenAt: null });
  metadata.arrivals.remove(node.id);
  if (isFolder) context.activity.expedite(inode.id);
  lookLater(context, group?.id ?? inode.id);
  advance(context, row.id);
  return true;
}
