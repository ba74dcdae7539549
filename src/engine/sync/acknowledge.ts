/**
 * Applies an answer of the gateway to the rows. An acknowledgement moves base; a refusal brings news, or parks the row.
 * An attempt outlives its entry: its answer moves the base of its node, whichever entry carries the node by then, if
 * any. Each function is one transaction and never waits.
 */
import type { RemoteError } from "../../client/errors.ts";
import { sameValue } from "../../contract/attributes.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import { minus, plus } from "../../lib/clocks.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { Entry } from "../../metadata/entries.ts";
import {
  baseOf,
  isKnownAfter,
  kindOf,
  type NodeRow,
  revisionOf,
  type Seen,
  type WritePosition,
} from "../../metadata/nodes.ts";
import {
  type Host,
  type LocalFiles,
  type Remote,
  type Request,
  type Rows,
  scopesOf,
  type Uploads,
} from "../core/index.ts";
import { retryAfterOf } from "../host/index.ts";
import type { Tree } from "../tree/index.ts";
import { addTombstone, advance, LOOK_AGAIN_MS, leftPlace } from "./advance.ts";
import { placeArrival } from "./arrival.ts";
import { adoptVersion } from "./content-agreed.ts";
import { afterWrite, isOnlyOurs, vacateState, withRevision } from "./echo.ts";
import { effectOf } from "./effect.ts";
import { isCoveredByIndex, noteWritten, positionNow } from "./index-watermark.ts";
import { enterGroup, joinGroup, leaveGroup, lookLater } from "./link-groups.ts";
import { removedFolderIsNotEmpty } from "./list-removed-folder.ts";
import { moveToConflictName } from "./name-conflicts.ts";
import { isStaleRead, observeNode } from "./observe.ts";
import { recognizeOwn, recognizeUnkeyed } from "./own-writes.ts";
import { requestRelist } from "./request-relist.ts";

type Sent = Attempt<Request>;

/** The pause before a request is planned again, after a refusal for want of room, or of a scope that only this request needs. */
const LATER_MS = 10_000;

/** The request was carried out. `told`: the node after it. `positionInAnswer`: in the journal. Undefined: not known. */
export function acknowledge(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  attempt: Sent,
  told: Node,
  positionInAnswer?: number,
): void {
  const { metadata, client } = context;
  metadata.transaction(() => {
    const position = positionNow(context, positionInAnswer);
    noteWritten(context, position);
    const known = metadata.nodes.get(attempt.node);
    if (known === undefined || metadata.attempts.ofKey(attempt.key) === undefined) {
      // The row is no longer the row of this node. The answer counts as news of the node, like any other.
      if (attempt.request.do !== "delete") observeNode(context, told);
      return;
    }
    const row = known.nodeId === null || known.nodeId === told.id ? known : leaveNode(context, known);
    const node = afterWrite(context, row, told);
    const isDeletion = attempt.request.do === "delete";
    // A repeated request gets its first answer, however old. So that answer says nothing of the gateway's present
    // history.
    if (attempt.tries === 0) {
      context.timeline.noteAcknowledged(told, { isDeleted: isDeletion, isContent: "size" in attempt.request });
    }
    if (isDeletion) return acknowledgeDeletion(context, row, attempt, node.revision, position);

    if (isOfOtherRow(context, row, node.id)) {
      closeAttempt(context, attempt);
      context.nodeRows.drop(row.id);
      context.quota.grew(attempt, node.size);
      metadata.rereads.add(node.id);
      context.activity.progressed();
      return;
    }
    absorbStranger(context, row, node.id);
    const shown = baseOf(node, position);
    const effect = effectOf(row.base, attempt, { base: shown, lastKey: node.lastKey }, client.features);
    const isOurs = isOnlyOurs(context, row.base, effect, node);
    // A gateway that tells no hashes has the content that was sent.
    const base = isOurs ? { ...shown, hash: shown.hash ?? effect.hash } : effect;
    const isSeenOlder = row.seen === null || (!("deleted" in row.seen) && row.seen.node.revision <= node.revision);
    const seen = deletedSince(context, node) ?? (isSeenOlder ? (isOurs ? null : { node }) : row.seen);
    metadata.nodes.update(row.id, { nodeId: node.id, base, seen, parked: null });
    vacateState(context, node.id, row.base, base);
    context.quota.grew(attempt, base.size - (row.base?.size ?? 0));
    metadata.rereads.found(node.id);
    // The node shows a foreign change beside ours, or the answer is wrong. A read by id tells which.
    if (!isOurs) metadata.rereads.add(node.id);
    // A repeated request gets its first answer, however old. So a newer state of the node that was heard meanwhile
    // stays news.
    const waiting = metadata.arrivals.get(node.id);
    if (waiting !== undefined && waiting.revision <= node.revision) metadata.arrivals.remove(node.id);
    if (row.base === null && !isKnownAfter(position, metadata.settings.getNumber("cursor")))
      metadata.rereads.add(node.id);
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

/** The deletion, if the journal told of it while the answer was under way. */
function deletedSince({ metadata }: Rows, node: Node): Seen | undefined {
  const tombstone = metadata.tombstones.get(node.id);
  if (tombstone === undefined || tombstone.revision <= node.revision) return undefined;
  const { revision, position } = tombstone;
  return { deleted: true, revision, ...(position === null ? {} : { position }) };
}

/**
 * The answer is about another node than the one the row has. An earlier creation had arrived, and its node has left the
 * place since. The row lets go of that node.
 */
function leaveNode(context: Rows & Remote & Host, row: NodeRow): NodeRow {
  if (row.seen !== null && "deleted" in row.seen) addTombstone(context, row);
  else if (row.nodeId !== null) context.metadata.rereads.add(row.nodeId);
  return context.metadata.nodes.update(row.id, { nodeId: null, base: null, seen: null, seenAt: null });
}

/**
 * True: the node belongs to another row by now. For example, its name was removed here before the answer to its
 * creation came, and another mount changed the node, so it came in as a foreign node under a second row. Programs saw
 * both names and removed one of them, or have changed the other since: then the second row keeps the node. If the node
 * came in after the removal, no program has said that it is to stay.
 */
function isOfOtherRow({ metadata }: Rows, row: NodeRow, nodeId: string): boolean {
  const stranger = metadata.nodes.ofNodeId(nodeId);
  if (row.entry !== null || stranger === undefined || stranger.id === row.id || stranger.entry === null) return false;
  const isChangedHere = stranger.dirtySince !== null || typeof stranger.base?.position === "number";
  return isChangedHere || stranger.changedAt === null || row.leftAt === null || stranger.changedAt <= row.leftAt;
}

/**
 * The node came in as a stranger's node under a second row, and does not belong to that row. The two rows are one:
 * `row` gets the node. If the stranger's entry is in use, it goes on as a new node; else it goes.
 */
function absorbStranger(context: Rows & LocalFiles & Uploads & Host, row: NodeRow, nodeId: string): void {
  const { metadata } = context;
  const stranger = metadata.nodes.ofNodeId(nodeId);
  if (stranger === undefined || stranger.id === row.id) return;
  // The other row may have had newer news, so the node is read again.
  metadata.rereads.add(nodeId);
  const entry = stranger.entry === null ? undefined : metadata.entries.get(stranger.entry);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  const isUsed =
    inode !== undefined &&
    (stranger.dirtySince !== null || context.cacheFiles.writersOf(inode) > 0 || !metadata.entries.isEmpty(inode.id));
  if (isUsed) {
    const now = context.runtime.now();
    // The request was about the node, which now belongs to `row`. News of the node will tell its effect.
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
  context.orphans.renewIfOrphan(entry.inode);
}

/** The answer to an exchange is about one node only. The exchange moved the other node to the place of that one. */
function otherHasMoved(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  request: Extract<Request, { do: "exchange" }>,
  position: WritePosition,
): void {
  const { metadata } = context;
  const row = metadata.nodes.ofNodeId(request.with);
  if (row?.base?.revision !== request.withRevision) {
    // A later answer about the other node tells its state, or a read does.
    metadata.rereads.add(request.with);
    context.queue.enqueue(row);
    return;
  }
  const revision = request.withRevision + 1;
  const base = { ...row.base, parent: request.withParent, name: request.withName, revision, position };
  const isSeenOlder = row.seen === null || revisionOf(row.seen) <= revision;
  metadata.nodes.update(row.id, { base, seen: isSeenOlder ? null : row.seen });
  leftPlace(context, row);
  advance(context, row.id);
}

function closeAttempt(context: Rows & LocalFiles & Host, attempt: Sent, how: "remove" | "abandon" = "remove"): void {
  const { attempts } = context.metadata;
  if (how === "remove") attempts.remove(attempt.id);
  else attempts.abandon(attempt.id, context.runtime.now());
  const { snapshot } = attempt;
  // Another name of the same inode may still be sending the snapshot.
  if (snapshot !== null && attempts.ofSnapshot(snapshot).length === 0) context.snapshotFiles.drop(snapshot);
}

/**
 * Closes an attempt that was refused for a reason that may change. An earlier sending of the request, if it had no
 * answer, may have been carried out, or may be once the reason is gone. So the attempt is remembered as abandoned: its
 * key will show that the effect was ours. An abandoned deletion also keeps contents from referring to its node, which
 * may go at any time.
 */
function closeRefused(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  attempt: Sent,
  error: RemoteError,
): void {
  const { request, tries } = attempt;
  const isLast = error.code === "changed" || tries === 0;
  closeAttempt(context, attempt, isLast ? "remove" : "abandon");
  if (isLast || "nodeId" in request || context.client.features.isFull) return;
  // While the request was open, news of its place was left to its answer (observe.ts). That news is not told again.
  const folder = context.nodeRows.folderOfNode(request.parent);
  if (folder !== undefined) requestRelist(context, folder);
}

/**
 * The folder exists at the gateway now, so rows that wait for it may be sent. Other mounts may have put nodes into it
 * before its answer came. The journal told of them while the folder was not known here; a new listing finds them. The
 * folder still counts as listed, so programs can list it while the gateway does not answer.
 */
function folderIsCreated(context: Rows & Remote & Uploads & Tree, row: NodeRow, position: WritePosition): void {
  const inode = context.nodeRows.inodeOf(row);
  if (inode === undefined) return;
  if (isCoveredByIndex(context, position)) requestRelist(context, inode.id);
  context.activity.expedite(inode.id);
}

function acknowledgeDeletion(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  row: NodeRow,
  attempt: Sent,
  revision: number,
  position: WritePosition,
): void {
  const { metadata } = context;
  closeAttempt(context, attempt);
  const seen: Seen = { deleted: true, revision, ...(typeof position === "object" ? {} : { position }) };
  // The answer was lost: the journal may have told of the deletion already, and will not tell it again.
  const isSeenDeleted = typeof position === "object" && row.seen !== null && "deleted" in row.seen;
  addTombstone(context, isSeenDeleted ? row : { ...row, seen });
  context.quota.grew(attempt, -(row.base?.size ?? 0));
  if (row.entry === null) {
    context.nodeRows.drop(row.id);
  } else {
    // A program made the name again while the deletion was under way. The entry becomes a new node.
    metadata.nodes.update(row.id, { nodeId: null, base: null, seen: null, seenAt: null });
    advance(context, row.id);
  }
  leftPlace(context, row);
  // A repeated request gets its first answer, however old. The node may have been restored since.
  if (row.seen !== null && "node" in row.seen) observeNode(context, row.seen.node);
  context.activity.progressed();
  context.activity.wake();
}

/**
 * The decision about a request that failed. `retry` true: the same request is sent again, after `afterMs` milliseconds
 * if given, else after the usual pause. False: this attempt is over, and the plan decides anew.
 */
export type Verdict = { readonly retry: true; readonly afterMs?: number } | { readonly retry: false };

/** A request was refused, or failed on its way. Closes the attempt unless the verdict is to retry. */
export function refused(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  attempt: Sent,
  error: RemoteError,
): Verdict {
  const { metadata } = context;
  return metadata.transaction((): Verdict => {
    const row = metadata.nodes.get(attempt.node);
    if (row === undefined || metadata.attempts.openOf(row.id)?.id !== attempt.id) return { retry: false };
    if (error.isTransient || error.code === "aborted" || error.code === "unauthorized") return { retry: true };
    if (error.code === "throttled") {
      const asked = retryAfterOf(error);
      // A Retry-After of 0 may mean less than a second, or a different clock. Without this minimum, each such answer
      // would cause the next request at once.
      return { retry: true, ...(asked === undefined ? {} : { afterMs: Math.max(asked, LOOK_AGAIN_MS) }) };
    }
    const { node: told } = error.details;
    const node = told?.id === row.nodeId && told?.kind !== row.kind ? undefined : told;
    const isOther = attempt.request.do === "exchange" && node?.id === attempt.request.with;
    const isOurs = node?.lastKey === attempt.key && !isOther;
    const mayBeOurs = !isOurs && node !== undefined && mayBeEarlierTry(context, attempt, error);
    // The refusal shows an old state, and not the node that has the name now.
    const shown = mayBeOurs ? withRevision(context, node, "others") : undefined;
    if (mayBeOurs && (shown === undefined || isStaleRead(context, shown))) {
      return { retry: true, afterMs: LOOK_AGAIN_MS };
    }
    if (isOurs || (mayBeOurs && isEarlierTry(context, row, attempt, node))) {
      acknowledge(context, attempt, node);
      return { retry: false };
    }
    closeRefused(context, attempt, error);
    if (node !== undefined && isOfOtherTimeline(context, row, node)) context.timeline.noteRollback();
    if (node?.lastKey != null && recognizeOwn(context, node)) return { retry: false };
    if (node !== undefined && takeFromTheWay(context, row, node)) return { retry: false };
    metadata.nodes.update(row.id, { due: context.runtime.now() });
    tellApart(context, row, attempt.request, error, node);
    context.activity.wake();
    context.activity.progressed();
    return { retry: false };
  });
}

/** True: the node is older than the state in base, which the gateway had acknowledged. So its data were set back. */
function isOfOtherTimeline({ client }: Remote, { nodeId, base }: NodeRow, node: Node): boolean {
  return client.features.isFull && node.id === nodeId && base !== null && node.revision < base.revision;
}

/** True: a creation of ours that was given up made the node in the way, or the node is read again to find that out. */
function takeFromTheWay(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  row: NodeRow,
  told: Node,
): boolean {
  const node = withRevision(context, told, "others");
  if (node === undefined || isStaleRead(context, node)) return false;
  context.metadata.nodes.update(row.id, { due: plus(context.runtime.now(), LOOK_AGAIN_MS) });
  return recognizeUnkeyed(context, node);
}

/**
 * True: the node in the way may be the effect of an earlier sending. The request was sent before without an answer, and
 * the gateway knows no keys.
 */
function mayBeEarlierTry({ client }: Remote, { tries }: Sent, { code }: RemoteError): boolean {
  return tries > 0 && !client.features.isFull && (code === "conflict" || code === "changed");
}

/**
 * True: the node is the effect of an earlier sending. A file is recognised by its content: as a foreign file, it would
 * put newer content here in conflict with our own. A folder is recognised only if it was removed here since: as a
 * foreign folder, it would come back for good.
 */
function isEarlierTry({ metadata }: Rows, row: NodeRow, { request }: Sent, node: Node): boolean {
  if (metadata.nodes.ofNodeId(node.id)?.id !== (row.nodeId === null ? undefined : row.id)) return false;
  if (request.do === "folder") return node.kind === "folder" && row.entry === null;
  return "hash" in request && request.hash !== null && node.contentHash === request.hash;
}

/** The request certainly had no effect. Acts on the reason of the refusal. */
function tellApart(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  row: NodeRow,
  request: Request,
  error: RemoteError,
  node: Node | undefined,
): void {
  const isCondition = error.code === "changed" || error.code === "conflict";
  const { scope, grant } = error.details;
  const isForbidden = error.code === "forbidden" && (scope !== undefined || grant !== undefined);
  if ("copyOf" in request && !isCondition && !isForbidden && error.code !== "overQuota") {
    // The version may be one that cannot be copied by reference. Whatever the reason is, the bytes can be sent instead.
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
      // If only a read by id is believed, the node is read before the plan goes on.
      if (context.metadata.nodes.get(row.id)?.seen === null) lookAgainLater(context, row);
    }
  } else if (isCondition) {
    lookAgainLater(context, row);
  } else if (error.code === "notFound" || (error.code === "invalid" && isMove(request))) {
    // Either one of the two nodes is gone, and news of that will come. Or the gateway does not know exchanges, and the
    // plan goes another way.
    if (request.do === "exchange") context.network.cannotExchange();
    // The target folder is gone (404), or is by now inside the node that was to move into it (400). The rows are out of
    // date.
    const parent = "parent" in request ? request.parent : undefined;
    lookAgainLater(context, row, request.do === "exchange" ? request.with : parent);
  } else if (error.code === "overQuota" && error.details.excess !== undefined) {
    // The plan makes the row wait for room now. It does not if the gateway counts in another way than this mount. Then
    // at least the request is not repeated at once.
    context.quota.refused(error.details.excess);
    context.metadata.nodes.update(row.id, { due: plus(context.runtime.now(), LATER_MS) });
  } else if (!isForbidden) {
    // The plan holds back the rows that need a missing scope, and all rows if a role is missing. Any other refusal is
    // about this node.
    park(context, row, error);
  } else if (!scopesOf(request.do).some((needed) => needed === scope)) {
    // The plan does not know this need: a role, the scope for the read before the request, or a further scope that this
    // gateway demands.
    context.metadata.nodes.update(row.id, { due: plus(context.runtime.now(), LATER_MS) });
  }
}

const isMove = (request: Request) =>
  request.do === "exchange" || (request.do === "patch" && request.parent !== undefined);

/**
 * Plans the row again after a pause. Its node, and the node `other` that the request named, are read meanwhile. As long
 * as one of them is not found, the pause gets longer, up to the settle time.
 */
function lookAgainLater(context: Rows & Host, row: NodeRow, other?: string): void {
  const { rereads, nodes } = context.metadata;
  const now = context.runtime.now();
  let wait = LOOK_AGAIN_MS;
  for (const id of [row.nodeId, other]) {
    if (id == null) continue;
    rereads.add(id);
    wait = Math.max(wait, minus(now, rereads.missingSince(id) ?? now));
  }
  nodes.update(row.id, { due: plus(now, Math.min(wait, SETTLE_MS)) });
}

function park(context: Rows & Host, row: NodeRow, error: RemoteError): void {
  // The name was removed while its creation was under way. No program wants the node any more, and the gateway did not
  // make it.
  if (row.entry === null && row.nodeId === null) return;
  context.log.error({ row: row.id, nodeId: row.nodeId, err: error }, "refused by the gateway, kept here");
  context.metadata.nodes.update(row.id, { parked: error.message, due: null });
}

/** The name that the row wanted belongs to another node. */
function nameIsTaken(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, row: NodeRow, told: Node): void {
  const { metadata } = context;
  // The answer may be older than news of the node that came meanwhile.
  const waiting = metadata.arrivals.get(told.id);
  const node = waiting !== undefined && waiting.revision > told.revision ? waiting : told;
  if (isStaleRead(context, node) || metadata.nodes.ofNodeId(node.id) !== undefined) {
    // A known node is still there, or is there again: the row waits until it leaves, or its news is taken in. A stale
    // read shows a node that is gone already.
    observeNode(context, node);
    metadata.nodes.update(row.id, { due: plus(context.runtime.now(), LOOK_AGAIN_MS) });
    return;
  }
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  const isThere =
    entry !== undefined &&
    (entry.gatewayName ?? entry.name) === node.name &&
    context.nodeRows.nodeIdOfFolder(entry.parent) === node.parentId;
  if (entry !== undefined && isThere && row.nodeId === null && join(context, row, entry, node)) return;
  if (entry !== undefined && isThere) {
    moveToConflictName(context, entry);
    metadata.afterCommit(context.activity.conflicted);
  }
  placeArrival(context, node);
}

/** A file or folder that was made alike here and at the gateway becomes one node. Returns false if they differ. */
function join(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  row: NodeRow,
  entry: Entry,
  node: Node,
): boolean {
  const { metadata } = context;
  const inode = metadata.inodes.get(entry.inode);
  if (inode === undefined || inode.kind !== kindOf(node)) return false;
  const isFolder = inode.kind === "folder";
  const isSame = isFolder || (inode.content !== "open" && inode.hash !== null && inode.hash === node.contentHash);
  if (!isSame || inode.attributes.target !== node.attributes.target) return false;
  const { link: _, ...remote } = node.attributes;
  const attributes = { ...inode.attributes, ...remote };
  const group = joinGroup(context, node);
  const isAlone = metadata.entries.links(inode.id) === 1 && context.cacheFiles.writersOf(inode) === 0;
  if (group !== undefined && group.id !== inode.id && isAlone) {
    metadata.entries.setInode(entry.id, group.id);
    context.orphans.renewIfOrphan(inode.id);
  }
  metadata.inodes.update(inode.id, {
    ...(sameValue(attributes, inode.attributes) ? {} : { attributes }),
    ...(isFolder ? { listed: null } : { content: "clean", originNode: node.id, originVersion: node.head }),
  });
  const isItsOwn = metadata.entries.get(entry.id)?.inode === inode.id;
  if (isItsOwn && inode.linkGroup === null) enterGroup(context, inode, node);
  if (node.head !== null) context.cacheFiles.comesFrom(inode.kernelNodeId, { node: node.id, version: node.head });
  const position = positionNow(context);
  metadata.nodes.update(row.id, { nodeId: node.id, base: baseOf(node, position), seen: null, seenAt: null });
  metadata.arrivals.remove(node.id);
  if (isFolder) context.activity.expedite(inode.id);
  lookLater(context, group?.id ?? inode.id);
  advance(context, row.id);
  return true;
}
