/**
 * A request that was given up (a writer came while its bytes were being sent) may have arrived all
 * the same. Its key, kept for a while, says that what the gateway then shows is ours: no conflict.
 */
import type { Node } from "../contract/resources.ts";
import { baseOf } from "../metadata/nodes.ts";
import { advance } from "./advance.ts";
import type { Context } from "./context.ts";

/** Longer than any request that was given up can still be under way. */
export const OWN_KEY_MS = 5 * 60_000;

/** True if the node's latest change is such a request's effect: base moves to it, newer content stays dirty. */
export function takeOwn(context: Context, node: Node): boolean {
  const { metadata } = context;
  const attempt = node.lastKey === null ? undefined : metadata.attempts.ofKey(node.lastKey);
  const row = attempt?.state === "abandoned" ? metadata.nodes.get(attempt.node) : undefined;
  if (attempt === undefined || row === undefined || (row.nodeId !== null && row.nodeId !== node.id)) return false;
  metadata.attempts.remove(attempt.id);
  const base = baseOf(node, row.base?.position ?? 0);
  const due = context.runtime.now();
  metadata.nodes.update(row.id, {
    nodeId: node.id,
    base,
    seen: null,
    seenAt: null,
    due,
    dirtySince: row.dirtySince ?? due,
  });
  metadata.arrivals.remove(node.id);
  advance(context, row.id);
  context.activity.wake();
  return true;
}
