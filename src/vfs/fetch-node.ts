/** Reads nodes by id, the one read that is never old, and brings what they tell to the rows. */
import { RemoteError } from "../client/errors.ts";
import type { Node } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { newestRevision, observeDeletion, observeNode } from "./observe.ts";

/** Folders of folders nobody knows yet; deeper is taken for a circle in what a gateway tells. */
const DEPTH_MAX = 1000;

/** The node, or undefined when its id answers 404. Other failures reject. */
export async function readNode(context: Context, nodeId: string, signal: AbortSignal): Promise<Node | undefined> {
  try {
    const node = await context.client.getNode(nodeId, { signal });
    context.network.answered();
    context.unfound.forget(nodeId);
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
  const chain = [node];
  while (chain.length < DEPTH_MAX) {
    const parentId = chain[0]?.parentId ?? null;
    if (parentId === null || context.metadata.nodes.ofNodeId(parentId) !== undefined) break;
    const parent = await readNode(context, parentId, signal);
    if (parent === undefined) {
      // Not found yet, or for good: then what is below it is not to be seen either.
      if (context.unfound.note(nodeId)) context.unfound.forget(nodeId);
      return;
    }
    chain.unshift(parent);
  }
  for (const link of chain) observeNode(context, link);
}

/**
 * The id answers 404. The node is gone only if it does so for the settle time (a gateway may not
 * find a node for a moment after its creation), its folder still answers (else it is merely not
 * visible, and everything is kept) and the journal is past our last write to it.
 */
async function confirmGone(context: Context, nodeId: string, signal: AbortSignal): Promise<void> {
  const { metadata, unfound } = context;
  if (!unfound.note(nodeId)) return;
  const row = metadata.nodes.ofNodeId(nodeId);
  if (row?.base == null || row.base.parent === null) return unfound.forget(nodeId);
  if (row.base.position > metadata.settings.getNumber("cursor")) return;
  const folderRow = metadata.nodes.ofNodeId(row.base.parent);
  const isFolderGone = folderRow === undefined || (folderRow.seen !== null && "deleted" in folderRow.seen);
  if (!isFolderGone && (await readNode(context, row.base.parent, signal)) === undefined) {
    context.refresh.add(row.base.parent);
    return;
  }
  const current = metadata.nodes.ofNodeId(nodeId);
  if (current?.base == null) return unfound.forget(nodeId);
  observeDeletion(context, nodeId, newestRevision(current) + 1, metadata.settings.getNumber("cursor"));
}
