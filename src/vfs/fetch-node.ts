/** Reads nodes by id, the one read that is never old, and brings what they tell to the rows. */
import { RemoteError } from "../client/errors.ts";
import type { Node } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { newestRevision, observeDeletion, observeNode } from "./observe.ts";

/** Folders of folders nobody knows yet; deeper is taken for a circle in what a gateway tells. */
const DEPTH_MAX = 1000;
/** A gateway may not find a node by its id for so long after a write. */
const SETTLE_MS = 5 * 60_000;
/** Between two looks at one that is missing; doubles. */
const AGAIN_MS = 1_000;

/** The node, or undefined when its id answers 404. Other failures reject. */
export async function readNode(context: Context, nodeId: string, signal: AbortSignal): Promise<Node | undefined> {
  try {
    const node = await context.client.getNode(nodeId, { signal });
    context.network.answered();
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

/** Reads the node, and the folders above it that are not known, and observes them from the top down. */
export async function refreshNode(context: Context, nodeId: string, signal: AbortSignal): Promise<void> {
  const node = await readNode(context, nodeId, signal);
  if (node === undefined) return confirmGone(context, nodeId, signal);
  context.missing.delete(nodeId);
  const chain = [node];
  while (chain.length < DEPTH_MAX) {
    const parentId = chain[0]?.parentId ?? null;
    if (parentId === null || context.metadata.nodes.ofNodeId(parentId) !== undefined) break;
    const parent = await readNode(context, parentId, signal);
    if (parent === undefined) return;
    chain.unshift(parent);
  }
  for (const link of chain) observeNode(context, link);
}

/** Whether it is to be asked for now. */
export function isTimeToAsk({ missing, runtime }: Context, nodeId: string): boolean {
  return (missing.get(nodeId)?.nextAt ?? 0) <= runtime.now();
}

/** True until it has been missing for the settle time; asks again meanwhile. */
function mayBeLate(context: Context, nodeId: string): boolean {
  const now = context.runtime.now();
  const since = context.missing.get(nodeId)?.since ?? now;
  if (now - since >= SETTLE_MS) {
    context.missing.delete(nodeId);
    return false;
  }
  context.missing.set(nodeId, { since, nextAt: now + Math.max(AGAIN_MS, now - since) });
  context.refresh.add(nodeId);
  return true;
}

/**
 * The id answers 404. The node is gone only if its folder still answers (else it is merely not
 * visible, and everything is kept), the journal is past our last write to it, and it is missing
 * again after the settle time, for a gateway may not find a node for a while after its creation.
 */
async function confirmGone(context: Context, nodeId: string, signal: AbortSignal): Promise<void> {
  const { metadata } = context;
  const row = metadata.nodes.ofNodeId(nodeId);
  if (row === undefined) {
    // The journal told of it; that it is gone, it tells too.
    if (metadata.tombstones.get(nodeId) === undefined) mayBeLate(context, nodeId);
    else context.missing.delete(nodeId);
    return;
  }
  if (row.base === null || row.base.parent === null) return;
  if (row.base.position > 0 && mayBeLate(context, nodeId)) return;
  if (row.base.position > metadata.settings.getNumber("cursor")) return;
  const folderRow = metadata.nodes.ofNodeId(row.base.parent);
  const isFolderGone = folderRow === undefined || (folderRow.seen !== null && "deleted" in folderRow.seen);
  if (!isFolderGone && (await readNode(context, row.base.parent, signal)) === undefined) {
    context.refresh.add(row.base.parent);
    return;
  }
  const current = metadata.nodes.ofNodeId(nodeId);
  if (current?.base == null) return;
  observeDeletion(context, nodeId, newestRevision(current) + 1, metadata.settings.getNumber("cursor"));
}
