/** Requests that a program waits for: after a failure that passes by itself, the request is repeated a few times. */
import type { RemoteError } from "../../client/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Host } from "./context.ts";

const TRIES = 4;
const PAUSES = { firstMs: 100, maxMs: 5_000 };

/** Milliseconds until the next try; undefined: no more tries. `tries`: how many have failed. */
export function retryDelay({ runtime }: Pick<Host, "runtime">, error: RemoteError, tries: number) {
  if (tries >= TRIES) return undefined;
  const wait = backoff(PAUSES, tries, runtime);
  // A program does not wait longer than this, even if the gateway asks for more.
  return Math.min(PAUSES.maxMs, Math.max(wait, error.details.retryAfterMs ?? 0));
}

/** True: the gateway did not answer, or was too busy. */
export const isRetryable = ({ code }: RemoteError) => code === "offline" || code === "server" || code === "throttled";
