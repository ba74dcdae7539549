/**
 * A request that was given up (a writer came while its bytes were being sent) may have arrived all
 * the same. Its key, kept for a while, says that what the gateway then shows is ours: no conflict.
 */
import type { Node } from "../contract/resources.ts";
import { baseOf, born, type NodeRow } from "../metadata/nodes.ts";
import { advance } from "./advance.ts";
import type { Context } from "./context.ts";

/** True if the node's latest change is such a request's effect: base moves to it, newer content stays dirty. */
export function takeOwn(context: Context, node: Node): boolean {
  const { metadata } = context;
  const attempt = node.lastKey === null ? undefined : metadata.attempts.ofKey(node.lastKey);
  const row = attempt?.state === "abandoned" ? metadata.nodes.get(attempt.node) : undefined;
  if (attempt === undefined || row === undefined) return false;
  // An answer that was long on its way tells of what base is past.
  if (row.nodeId === node.id && node.revision <= (row.base?.revision ?? -1)) return false;
  const known = metadata.nodes.ofNodeId(node.id);
  if (known !== undefined && known.id !== row.id) return false;
  metadata.attempts.remove(attempt.id);
  // An old answer: what was heard of the node since then is news.
  if ((metadata.arrivals.get(node.id)?.revision ?? 0) <= node.revision) metadata.arrivals.remove(node.id);
  const due = context.runtime.now();
  if (isBornElsewhere(context, row, node)) {
    // Two births of one file: the older one, whose place nobody here shows any more, is a deletion to send.
    metadata.nodes.create({ ...born(null, node), dirtySince: due, due });
    context.activity.wake();
    return true;
  }
  const base = baseOf(node, row.base?.position ?? 0);
  metadata.nodes.update(row.id, {
    nodeId: node.id,
    base,
    seen: null,
    seenAt: null,
    due,
    dirtySince: row.dirtySince ?? due,
  });
  advance(context, row.id);
  context.activity.wake();
  return true;
}

/** By another request, answered or not. One for the same place cannot have been carried out beside this one. */
function isBornElsewhere({ metadata }: Context, row: NodeRow, node: Node): boolean {
  if (row.nodeId !== null) return row.nodeId !== node.id;
  const request = metadata.attempts.openOf(row.id)?.request;
  if (request === undefined || !("parent" in request)) return false;
  return request.parent !== node.parentId || request.name !== node.name;
}
