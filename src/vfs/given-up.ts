/**
 * Births that were given up (a writer came while their bytes were being sent) may still arrive. Who
 * has forgotten them would take what they made for somebody else's: the name would come back with
 * what was in it before. So they outlive their row's birth, its place and its end.
 */
import { SETTLE_MS } from "../contract/features.ts";
import type { Context } from "./context.ts";

/** Longer than any request that was given up can still be under way. */
export const OWN_KEY_MS = SETTLE_MS;

/** The row is no longer needed. While a birth of it may still arrive, it stays as what then deletes that; nobody waits for it. */
export function dropRow({ metadata, runtime }: Pick<Context, "metadata" | "runtime">, id: number): void {
  const { attempts, nodes } = metadata;
  if (!attempts.hasAbandonedBirth(id)) {
    attempts.removeAllOf(id);
    nodes.remove(id);
    return;
  }
  const nothing = { entry: null, nodeId: null, base: null, seen: null, seenAt: null, dirtySince: null, parked: null };
  nodes.update(id, { ...nothing, leftParent: null, leftName: null, leftAt: null, due: runtime.now() });
}
