/**
 * A program waits for the gateway's answer, and the request fails in a way that passes by itself: it is repeated a few
 * times.
 */
import type { RemoteError } from "../../client/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Host } from "./context.ts";

const TRIES = 4;
const PAUSES = { firstMs: 100, maxMs: 5_000 };

/** Milliseconds until the next try; undefined: it was tried often enough. */
export function retryDelay({ runtime }: Pick<Host, "runtime">, error: RemoteError, tries: number) {
  if (tries >= TRIES) return undefined;
  const wait = backoff(PAUSES, tries, runtime);
  // A program waits no longer, whatever the gateway asks for.
  return Math.min(PAUSES.maxMs, Math.max(wait, error.details.retryAfterMs ?? 0));
}

/** The gateway did not answer, or had no time. */
export const isRetryable = ({ code }: RemoteError) => code === "offline" || code === "server" || code === "throttled";
