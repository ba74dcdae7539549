/**
 * What is heard of the gateway's nodes comes in here: by id, from listings, from refusals. Decides
 * what is news and what is lag; what to do about news is the plan's. Never waits.
 */
import type { Node } from "../../contract/resources.ts";
import { baseOf, isSameBase, type NodeRow, type Seen } from "../../metadata/nodes.ts";
import { areCreationsKeyed, type Context, type Remote, type Rows } from "../core/index.ts";
import { giveUndeletable } from "../tree/index.ts";
import { advance } from "./advance.ts";
import { placeArrival } from "./arrival.ts";
import { type Source, withRevision } from "./echo.ts";
import { noteWritten } from "./index-watermark.ts";
import { keyOfContent, recognizeOwn, recognizeUnkeyed } from "./own-writes.ts";

/** A node as the gateway told it. Older than what is known: lag, ignored. */
export function observeNode(context: Context, told: Node, source: Source = "others"): void {
  const { metadata } = context;
  metadata.transaction(() => {
    const node = withRevision(context, told, source);
    if (isStaleRead(context, node)) return;
    const row = metadata.nodes.ofNodeId(node.id);
    if (row === undefined) {
      const aside = isOwnCreation(context, node) ? undefined : placeArrival(context, node);
      if (aside !== undefined) advance(context, aside);
      return;
    }
    // No node changes its kind.
    if (row.kind !== node.kind) return;
    const isNewer = node.revision > (row.base?.revision ?? -1) && node.revision > revisionOf(row.seen);
    const isNews = isNewer || (source === "id" && isContradicted(context, row, node));
    // A request given up for a newer cut has arrived all the same: the news is ours.
    if (isNews && recognizeOwn(context, node)) return;
    const hidden = node.revision > (row.base?.revision ?? -1) ? keyOfContent(context, row, node) : undefined;
    if (hidden !== undefined && recognizeOwn(context, node, hidden)) return;
    const seen = isNews ? metadata.nodes.update(row.id, { seen: { node }, seenAt: context.runtime.now() }) : row;
    advance(context, seen.id);
    const left = source === "id" ? metadata.nodes.get(seen.id) : undefined;
    if (left !== undefined) giveUndeletable(context, left);
  });
}

/**
 * A revision is one state of a node, and by id it is never old: an answer of before, to a write, was wrong. Nothing else
 * would ever correct it, for each request asks for what it said.
 */
function isContradicted({ client }: Remote, { base, seen }: NodeRow, node: Node): boolean {
  if (!client.features.revisions || base === null || (seen !== null && "deleted" in seen)) return false;
  const known = seen === null ? base : baseOf(seen.node, 0);
  return known.revision === node.revision && !isSameBase(known, baseOf(node, 0));
}

/** Lag, or what the node was before a deletion that is known here. `node`: as `withRevision` gives it. */
export function isStaleRead({ metadata }: Pick<Rows, "metadata">, node: Node): boolean {
  const tombstone = metadata.tombstones.get(node.id);
  return node.revision < 0 || (tombstone !== undefined && node.revision <= tombstone.revision);
}

/** The gateway no longer has the node: its journal said so at `position`, or asking for its id (null). */
export function observeDeletion(context: Context, nodeId: string, revision: number, position: number | null): void {
  const { metadata } = context;
  metadata.transaction(() => {
    metadata.arrivals.remove(nodeId);
    const row = metadata.nodes.ofNodeId(nodeId);
    if (row === undefined) {
      metadata.tombstones.add({ nodeId, revision, position });
      return;
    }
    const known = revisionOf(row.seen);
    const isUnplaced = row.seen !== null && "deleted" in row.seen && row.seen.position === undefined;
    if (revision <= (row.base?.revision ?? -1) || revision < known) return;
    // Known already: what waits for a writer goes on waiting since then.
    const isKnown = row.seen !== null && "deleted" in row.seen;
    if (isKnown && position === null) return;
    if (revision === known && !(isUnplaced && position !== null)) return;
    // Removed here too: this may be our own deletion, whose answer was lost, and lists are to show that it is done.
    if (row.entry === null && position !== null) noteWritten(context, position);
    const seen = { deleted: true, revision, ...(position === null ? {} : { position }) } as const;
    metadata.nodes.update(row.id, { seen, seenAt: context.runtime.now() });
    if (row.kind === "folder" && !context.client.features.journal) askBelow(context, nodeId);
    advance(context, row.id);
  });
}

/** What is in a folder that is gone no listing tells any more, and without a journal nothing else does. */
function askBelow({ metadata }: Rows, nodeId: string): void {
  for (const row of metadata.nodes.below(nodeId)) if (row.nodeId !== null) metadata.rereads.add(row.nodeId);
}

/** The newest revision that is known of a node. */
export function newestRevision(row: NodeRow): number {
  return Math.max(row.base?.revision ?? 0, revisionOf(row.seen));
}

export function revisionOf(seen: Seen | null): number {
  if (seen === null) return -1;
  return "deleted" in seen ? seen.revision : seen.node.revision;
}

/**
 * Born by a request of ours whose answer is not here yet. An open one is repeated until it is
 * answered, and the answer gives the row its id; one that was given up is answered by this.
 */
function isOwnCreation(context: Context, node: Node): boolean {
  const { attempts } = context.metadata;
  if (node.lastKey === null) {
    if (areCreationsKeyed(context.client.features) || node.parentId === null) return false;
    // Nobody says whose it is: at the place an open request wants, that request's answer will.
    return attempts.isPlaceWanted(undefined, node.parentId, node.name) || recognizeUnkeyed(context, node);
  }
  return attempts.ofKey(node.lastKey)?.state === "open" || recognizeOwn(context, node);
}

/** Nodes that waited for their name, or whose row has come into being meanwhile: so many, in turn. The last one's id; "": all had their turn. */
export function retryArrivals(context: Context, after: string, limit: number): string {
  const waiting = context.metadata.arrivals.list(after, limit);
  for (const node of waiting) {
    context.metadata.transaction(() => {
      if (context.metadata.nodes.ofNodeId(node.id) !== undefined) context.metadata.arrivals.remove(node.id);
      observeNode(context, node);
    });
  }
  return waiting.length < limit ? "" : (waiting.at(-1)?.id ?? "");
}
