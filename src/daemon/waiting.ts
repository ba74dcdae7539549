/**
 * The limits of all waits, so that no program ever hangs: for the gateway's silence, for a whole request of the kernel,
 * for the daemon's heartbeat. Tests divide all of them by the same number.
 */

import type { SilenceLimits } from "../client/http-transport.ts";
import { SILENCE_LIMITS } from "../client/silence.ts";
import { DEADLINE_MS } from "../fuse/session.ts";

/** For requests in flight when the mount is gone. The kernel waits for them no more, but their effects must be kept. */
export const DRAIN_LIMIT_MS = 30_000;
const HEARTBEAT_SECONDS = 30;
/** A busy machine may delay a daemon's heartbeat by a few seconds. */
const HEARTBEAT_LEAST_SECONDS = 6;

export function silenceLimits(divisor: number): SilenceLimits {
  return Object.fromEntries(Object.entries(SILENCE_LIMITS).map(([name, limit]) => [name, limit / divisor]));
}

/** The limit of one request of the kernel, whatever it asks the network for. */
export function requestLimitMs(divisor: number): number {
  return DEADLINE_MS / divisor;
}

/** After this silence the supervisor takes the daemon for dead. */
export function heartbeatLimitSeconds(divisor: number): number {
  return Math.max(HEARTBEAT_LEAST_SECONDS, Math.ceil(HEARTBEAT_SECONDS / divisor));
}
