/**
 * Births that were given up (a writer came while their bytes were being sent) may still arrive. Who
 * has forgotten them would take what they made for somebody else's: the name would come back with
 * what was in it before. So they outlive their row's birth, its place and its end.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { Host, Rows } from "../core/index.ts";

/** Longer than any request that was given up can still be under way. */
export const OWN_KEY_MS = SETTLE_MS;

/** Whoever heard nothing for so long may have missed what arrived meanwhile. */
const GAP_MS = 2 * 60_000;
const FORGET_MS = 60_000;

/**
 * Answers what is to be called whenever the gateway was heard out: it forgets the keys of requests
 * that would have arrived, and been told of, long since. While nothing is heard none is forgotten:
 * what came of them is told when the gateway answers again, and by a poll not all at once.
 */
export function createForgetting({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">): () => void {
  let since = runtime.elapsed();
  let heardAt = since;
  let forgotAt = since;
  return () => {
    const now = runtime.elapsed();
    if (now - heardAt > GAP_MS) since = now;
    heardAt = now;
    if (now - since < OWN_KEY_MS || now - forgotAt < FORGET_MS) return;
    forgotAt = now;
    metadata.attempts.removeAbandonedBefore(runtime.now() - OWN_KEY_MS);
  };
}

/** The row is no longer needed. While a birth of it may still arrive, it stays as what then deletes that; nobody waits for it. */
export function dropRow({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">, id: NodeRowId): void {
  const { attempts, nodes } = metadata;
  if (!attempts.hasAbandonedCreation(id)) {
    attempts.removeAllOf(id);
    nodes.remove(id);
    return;
  }
  const nothing = { entry: null, nodeId: null, base: null, seen: null, seenAt: null, dirtySince: null, parked: null };
  nodes.update(id, { ...nothing, leftParent: null, leftName: null, leftAt: null, due: runtime.now() });
}
