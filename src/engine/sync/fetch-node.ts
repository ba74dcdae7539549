/** Reads nodes by id and brings the results to the rows. A read by id is the one kind of read that is never old. */
import { RemoteError } from "../../client/errors.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import type { Node } from "../../contract/resources.ts";
import { earlierOf, minus, plus, type RowTime } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import { type NodeRow, newestRevision } from "../../metadata/nodes.ts";
import type { Reread } from "../../metadata/rereads.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { withHash } from "./content-hash.ts";
import { observeDeletion, observeMovedOut, observeNode } from "./observe.ts";
import { isContentUnknown } from "./own-writes.ts";
import { requestRelist } from "./request-relist.ts";

/** The most unknown folders above a node that are read. More count as a circle. */
const DEPTH_MAX = 1000;
/**
 * A node that the gateway fails to tell of, or whose folder is not visible, is read again after this time; then less
 * and less often.
 */
const REREAD_MS = 10_000;
/** A node that the account may not read is read again after this time. */
const HIDDEN_MS = 60_000;
/** Nodes that are moved out in one synchronous stretch. */
const SLICE = 200;
/** The shortest time after which an id that answered 404 is read again. */
const ASK_AGAIN_MS = 1_000;

/** The node; undefined if its id answers 404. Rejects with the RemoteError of any other failure. */
export async function readNode(context: Rows & Remote, nodeId: string, signal: AbortSignal): Promise<Node | undefined> {
  try {
    const asked = context.readOrder.asking();
    const node = await context.client.getNode(nodeId, { signal });
    context.readOrder.answered(node, asked);
    context.network.answered(OPERATIONS.getNode.scopes);
    context.metadata.rereads.found(nodeId);
    return node;
  } catch (error) {
    if (error instanceof RemoteError && error.code === "notFound") {
      context.network.answered();
      return undefined;
    }
    context.network.failed(error);
    throw error;
  }
}

/**
 * The node; "hidden" if the account has no grant for it; undefined if its id answers 404. So one node without a grant
 * does not keep the journal from being followed. Rejects with the RemoteError of any other failure, also if the token
 * lacks the scope and can read no node at all.
 */
export function readOrHidden(
  context: Rows & Remote,
  nodeId: string,
  signal: AbortSignal,
): Promise<Node | "hidden" | undefined> {
  return readNode(context, nodeId, signal).catch((error: unknown) => {
    const isHidden = error instanceof RemoteError && error.code === "forbidden" && error.scope === undefined;
    if (isHidden) return "hidden";
    throw error;
  });
}

/** True: the gateway fails to tell of this node (5xx, or a malformed answer), and does not fail for every node. */
export function isUntellable({ network }: Pick<Remote, "network">, error: unknown): boolean {
  const isFailed = error instanceof RemoteError && (error.code === "server" || error.code === "malformed");
  return isFailed && network.isOnline && network.pauseMs("getNode") === 0;
}

/**
 * Reads the node and the unknown folders above it, and observes them top down. Rejects with the RemoteError of a read.
 */
export async function refreshNode(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  reread: Reread,
  signal: AbortSignal,
): Promise<void> {
  const { metadata, workspace } = context;
  const told = await readNode(context, reread.nodeId, signal);
  if (told === undefined) return confirmGone(context, reread, signal);
  const chain = [isContentUnknown(context, told) ? await withHash(context, told, signal) : told];
  while (chain.length < DEPTH_MAX && chain[0]?.id !== workspace.rootId) {
    const parentId = chain[0]?.parentId ?? null;
    if (parentId === null) return moveOut(context, reread, told);
    if (metadata.nodes.ofNodeId(parentId) !== undefined) break;
    const parent = await readNode(context, parentId, signal);
    if (parent === undefined) return askMoreSeldom(context, reread);
    chain.unshift(parent);
  }
  metadata.transaction(() => {
    for (const link of chain) observeNode(context, link, "id");
    metadata.rereads.done(reread);
  });
}

/**
 * The node was moved out of the folder that is mounted. For this mount it is gone, with all that is in it. The nodes in
 * a folder go before the folder, in slices, so that other requests get in between. If the process dies in the middle,
 * the next one reads the node again, and the rest goes.
 */
async function moveOut(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  reread: Reread,
  told: Node,
): Promise<void> {
  const { metadata } = context;
  const outside = [told.id];
  for (const id of outside) {
    for (const row of metadata.nodes.below(id)) if (isIn(context, row, id)) outside.push(row.nodeId);
  }
  for (let end = outside.length; end > 0; end -= SLICE) {
    metadata.transaction(() => {
      for (const id of outside.slice(Math.max(0, end - SLICE), end).reverse()) {
        observeMovedOut(context, id, id === told.id ? told : undefined);
      }
    });
    await sleep(context.runtime, 0);
  }
  metadata.rereads.done(reread);
}

/** True: the node's name is in this folder here, too. False if a program has moved it and that is not sent yet. */
function isIn(
  { metadata, nodeRows }: Rows & Tree,
  row: NodeRow,
  folder: string,
): row is NodeRow & { readonly nodeId: string } {
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  return entry !== undefined && row.nodeId !== null && nodeRows.nodeIdOfFolder(entry.parent) === folder;
}

/**
 * The node could not be read or placed, and is read less and less often: each time after half of the time for which
 * that has been so. Until then it stays as it is here.
 */
export function askMoreSeldom({ metadata, runtime }: Rows & Host, reread: Reread): void {
  const now = runtime.now();
  metadata.transaction(() => {
    const since = metadata.rereads.hidden(reread, now);
    metadata.rereads.postpone(
      reread,
      plus(now, Math.min(SETTLE_MS, Math.max(REREAD_MS, Math.ceil(minus(now, since) / 2)))),
    );
  });
}

/**
 * The id answers 404. The node counts as gone only if its folder still answers, and if its id has answered 404 for the
 * settle time. If the folder does not answer, the node is merely not visible, and everything is kept. Soon after the
 * creation of a node, a gateway may not find it by its id, even if the journal shows it. Most deletions are known from
 * the journal before this.
 */
async function confirmGone(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  reread: Reread,
  signal: AbortSignal,
): Promise<void> {
  const { metadata } = context;
  const { rereads } = metadata;
  const { nodeId } = reread;
  const row = metadata.nodes.ofNodeId(nodeId);
  // The root has no folder that could show whether the root is gone. It is read at each start.
  if (row?.base != null && row.base.parent === null) return rereads.done(reread);
  if (row?.base?.parent != null && isMissingForSettleTime(context, reread)) {
    const { parent } = row.base;
    const folder = metadata.nodes.ofNodeId(parent);
    const isFolderGone = folder === undefined || (folder.seen !== null && "deleted" in folder.seen);
    if (isFolderGone || (await readNode(context, parent, signal)) !== undefined) {
      return metadata.transaction(() => takeAsGone(context, reread));
    }
    rereads.add(parent);
  }
  metadata.transaction(() => waitOrForget(context, reread));
}

/**
 * The account may not read the node. Its row is kept, and it is read again later. A node without a row is read only
 * until the settle time is over. The refusal does not tell whether the node is deleted, so a tombstone is not taken as
 * a sign: the node may have been restored.
 */
export function notVisible(context: Rows & Remote & Uploads & Host & Tree, reread: Reread): void {
  const { metadata, runtime } = context;
  if (metadata.nodes.ofNodeId(reread.nodeId) === undefined)
    metadata.transaction(() => waitOrForget(context, reread, false));
  else metadata.rereads.postpone(reread, plus(runtime.now(), HIDDEN_MS));
}

function takeAsGone(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, reread: Reread): void {
  const { metadata } = context;
  const row = metadata.nodes.ofNodeId(reread.nodeId);
  // While its folder was read, the node was found, or we wrote to it: it is there.
  if (row?.base == null || !isMissingForSettleTime(context, reread)) {
    waitOrForget(context, reread);
    return;
  }
  observeDeletion(context, reread.nodeId, newestRevision(row) + 1, null);
  metadata.rereads.done(reread);
}

function isMissingForSettleTime({ metadata, runtime }: Rows & Host, { nodeId }: Reread): boolean {
  const since = metadata.rereads.missingSince(nodeId);
  return since !== undefined && minus(runtime.now(), since) >= SETTLE_MS;
}

/**
 * The node is read again, less and less often. A node without a row is read only until its tombstone or the settle time
 * shows that it is gone, or not visible. After that only a list of its folder could show the node, so the folder is
 * listed.
 */
function waitOrForget(
  context: Rows & Remote & Uploads & Host & Tree,
  reread: Reread,
  isDeleted = context.metadata.tombstones.get(reread.nodeId) !== undefined,
): void {
  const { metadata, runtime } = context;
  const now = runtime.now();
  const since = metadata.rereads.missingSince(reread.nodeId) ?? now;
  const isOurs = metadata.nodes.ofNodeId(reread.nodeId) !== undefined;
  if (isOurs || (!isDeleted && minus(now, since) < SETTLE_MS)) {
    metadata.rereads.missing(reread, since, nextAsk(since, now));
    return;
  }
  metadata.rereads.done(reread);
  const folder = isDeleted || reread.folder === null ? undefined : context.nodeRows.folderOfNode(reread.folder);
  if (folder !== undefined) requestRelist(context, folder);
}

/** The pause is as long as the id has been missing, so it doubles. The settle time brings one more read. */
function nextAsk(since: RowTime, now: RowTime): RowTime {
  const next = plus(now, Math.min(SETTLE_MS, Math.max(ASK_AGAIN_MS, minus(now, since))));
  const settleTimeEnd = plus(since, SETTLE_MS);
  return now < settleTimeEnd ? earlierOf(next, settleTimeEnd) : next;
}
