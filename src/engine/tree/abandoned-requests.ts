/**
 * Creations that were given up may still arrive at the gateway. Example: a program opens the file for writing while its
 * bytes are being sent, and the upload is given up. If the request were forgotten, the node that it makes would look
 * like a foreign one: the name would come back with its earlier content. So such requests are remembered longer than
 * the creation, the place and the end of their row.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import { minus, plus } from "../../lib/clocks.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { Host, Rows } from "../core/index.ts";

/** Longer than any request that was given up can still be under way. */
export const OWN_KEY_MS = SETTLE_MS;

/** If nothing was heard for longer than this, something that arrived meanwhile may have been missed. */
const GAP_MS = 2 * 60_000;
const FORGET_MS = 60_000;

/**
 * Returns a function to be called each time everything that the gateway has to tell was heard. It forgets the keys of
 * requests that would have arrived, and been told of, long ago. While nothing is heard, no key is forgotten: the
 * effects are told only when the gateway answers again, and a poll does not tell all of them at once.
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
