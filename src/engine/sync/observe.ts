/**
 * All news of the gateway's nodes comes in here: reads by id, listings, refusals. This file tells news from lag. The
 * plan decides about news. Never waits.
 */
import type { Node } from "../../contract/resources.ts";
import {
  baseOf,
  isAfterBase,
  isAfterSeen,
  isSameBase,
  type NodeRow,
  newestRevision,
  revisionOf,
} from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { advance } from "./advance.ts";
import { placeArrival } from "./arrival.ts";
import { type Source, withRevision } from "./echo.ts";
import { noteWritten } from "./index-watermark.ts";
import { keyOfContent, recognizeOwn, recognizeUnkeyed } from "./own-writes.ts";

/** Takes in a node as the gateway told it. A state older than the known one is lag and ignored. */
export function observeNode(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  told: Node,
  source: Source = "others",
): void {
  const { metadata } = context;
  metadata.transaction(() => {
    const node = withRevision(context, told, source);
    if (node === undefined || isStaleRead(context, node)) return;
    const row = metadata.nodes.ofNodeId(node.id);
    if (row === undefined) {
      const aside = isOwnCreation(context, node) ? undefined : placeArrival(context, node);
      if (aside !== undefined) advance(context, aside);
      return;
    }
    // No node changes its kind.
    if (row.kind !== node.kind) return;
    const isNewer = isAfterBase(row, node.revision) && isAfterSeen(row, node.revision);
    const isNews = isNewer || (source === "id" && isContradicted(context, row, node));
    // If the change was made by a request of ours that was given up and has arrived all the same, it is no news.
    if (isNews && recognizeOwn(context, node)) return;
    const hidden = isAfterBase(row, node.revision) ? keyOfContent(context, row, node) : undefined;
    if (hidden !== undefined && recognizeOwn(context, node, hidden)) return;
    const current = isNews ? metadata.nodes.update(row.id, { seen: { node }, seenAt: context.runtime.now() }) : row;
    advance(context, current.id);
    // While the root is deleted, nothing is sent (host/read-only.ts). It may be restored now.
    if (node.id === context.workspace.rootId) metadata.afterCommit(() => context.activity.wake());
    const left = source === "id" ? metadata.nodes.get(current.id) : undefined;
    if (left !== undefined) context.names.giveUndeletable(left);
  });
}

/**
 * True: a read by id contradicts the row at the same revision. A revision is one state of a node, and a read by id is
 * never old, so the earlier answer, to a write, was wrong. No later request would correct the row, because each one is
 * made from the wrong state.
 */
function isContradicted({ client }: Remote, { base, seen }: NodeRow, node: Node): boolean {
  if (!client.features.isFull || base === null || (seen !== null && "deleted" in seen)) return false;
  const known = seen === null ? base : baseOf(seen.node);
  return known.revision === node.revision && !isSameBase(known, baseOf(node));
}

/** True: the node shows a state before a deletion that is known here. `node`: as `withRevision` returns it. */
export function isStaleRead({ metadata }: Pick<Rows, "metadata">, node: Node): boolean {
  const tombstone = metadata.tombstones.get(node.id);
  return tombstone !== undefined && node.revision <= tombstone.revision;
}

/** The gateway no longer has the node. `position`: that of the journal's entry. Null: the node's id answers 404. */
export function observeDeletion(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  nodeId: string,
  revision: number,
  position: number | null,
): void {
  const { metadata } = context;
  metadata.transaction(() => {
    metadata.arrivals.remove(nodeId);
    const row = metadata.nodes.ofNodeId(nodeId);
    if (row === undefined) {
      metadata.tombstones.add({ nodeId, revision, position });
      return;
    }
    const known = row.seen === null ? undefined : revisionOf(row.seen);
    const isUnplaced = row.seen !== null && "deleted" in row.seen && row.seen.position === undefined;
    if (!isAfterBase(row, revision) || (known !== undefined && revision < known)) return;
    // A deletion that is known already keeps the time at which it was first seen, so that the wait for a writer does
    // not begin anew.
    const isKnown = row.seen !== null && "deleted" in row.seen;
    if (isKnown && position === null) return;
    if (revision === known && !(isUnplaced && position !== null)) return;
    // The name was removed here too, so this may be our own deletion whose answer was lost. Its position is noted as
    // that of a write of ours: nothing counts as settled before lists show it.
    if (row.entry === null && position !== null) noteWritten(context, position);
    const seen = { deleted: true, revision, ...(position === null ? {} : { position }) } as const;
    metadata.nodes.update(row.id, { seen, seenAt: context.runtime.now() });
    if (row.kind === "folder" && !context.client.features.isFull) askBelow(context, nodeId);
    advance(context, row.id);
  });
}

/**
 * The node is no longer in the folder that is mounted. That counts as a deletion one revision before its newest state,
 * because it may come back in that very state. `told`: the node as it was read by id; absent: it went with a folder.
 */
export function observeMovedOut(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  nodeId: string,
  told?: Node,
): void {
  const { metadata, runtime } = context;
  metadata.transaction(() => {
    metadata.arrivals.remove(nodeId);
    const row = metadata.nodes.ofNodeId(nodeId);
    if (row === undefined) return;
    const revision = told === undefined ? undefined : withRevision(context, told, "id")?.revision;
    const position = metadata.settings.getNumber("cursor");
    const seen = { deleted: true, revision: Math.max(newestRevision(row), revision ?? 0) - 1, position } as const;
    metadata.nodes.update(row.id, { seen, seenAt: runtime.now() });
    advance(context, row.id);
  });
}

/** Requests reads of the nodes in a folder that is gone: no listing shows them any more, and there is no journal. */
function askBelow({ metadata }: Rows, nodeId: string): void {
  for (const row of metadata.nodes.below(nodeId)) if (row.nodeId !== null) metadata.rereads.add(row.nodeId);
}

/**
 * True: a request of ours created the node, and its answer is not here yet. An open request is repeated until it is
 * answered, and its answer gives the row the node's id. For a request that was given up, this node counts as the
 * answer.
 */
function isOwnCreation(context: Rows & LocalFiles & Remote & Uploads & Host & Tree, node: Node): boolean {
  const { attempts } = context.metadata;
  if (node.lastKey === null) {
    if (context.client.features.isFull || node.parentId === null) return false;
    // The gateway does not tell the creator of the node. If an open request wants this place, its answer will.
    return attempts.isPlaceWanted(undefined, node.parentId, node.name) || recognizeUnkeyed(context, node);
  }
  return attempts.ofKey(node.lastKey)?.state === "open" || recognizeOwn(context, node);
}

/**
 * Tries to place arrivals again: at most `limit` of them, in the order of their ids, after the node id `after`. Returns
 * the id of the last one; undefined if all have had their turn.
 */
export function retryArrivals(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  after: string | undefined,
  limit: number,
): string | undefined {
  const waiting = context.metadata.arrivals.list(after, limit);
  for (const node of waiting) {
    context.metadata.transaction(() => {
      if (context.metadata.nodes.ofNodeId(node.id) !== undefined) context.metadata.arrivals.remove(node.id);
      observeNode(context, node);
    });
  }
  return waiting.length < limit ? undefined : waiting.at(-1)?.id;
}
