/**
 * Creations that were given up may still arrive at the gateway. Example: a program opens the file for writing while its
 * bytes are being sent, and the upload is given up. If the request were forgotten, the node that it makes would look
 * like a foreign one: the name would come back with its earlier content. So such a request is remembered, even after
 * its row has got its node by another request, has moved, or is not needed any more.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import { minus, plus } from "../../lib/clocks.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { Host, Rows } from "../core/index.ts";

/** A request that was given up is under way no longer than this. */
const OWN_KEY_MS = SETTLE_MS;

/** After a longer silence of the gateway, the effect of a request that arrived meanwhile may not be known yet. */
const GAP_MS = 2 * 60_000;
const FORGET_MS = 60_000;

/**
 * Returns a function to be called each time all news of the gateway has been heard. It forgets the keys of requests
 * whose effect would have been told long ago. During a silence no key is forgotten, and after it not at once: effects
 * are told only when the gateway answers again, and a poll does not tell all of them together.
 */
export function createForgetting({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">): () => void {
  let since = runtime.elapsed();
  let heardAt = since;
  let forgotAt = since;
  return () => {
    const now = runtime.elapsed();
    if (minus(now, heardAt) > GAP_MS) since = now;
    heardAt = now;
    if (minus(now, since) < OWN_KEY_MS || minus(now, forgotAt) < FORGET_MS) return;
    forgotAt = now;
    metadata.attempts.removeAbandonedBefore(plus(runtime.now(), -OWN_KEY_MS));
  };
}

/**
 * Removes a row that is no longer needed. While a creation of it may still arrive, the row stays as a queued deletion:
 * it deletes the node that the creation makes. Nothing waits for that row.
 */
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
