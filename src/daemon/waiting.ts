/**
 * How long anything is waited for so that no program ever hangs: the gateway's silence, a request of the
 * kernel in all, the daemon's heartbeat. Tests divide all of them by the same number.
 */

import type { SilenceLimits } from "../client/http-transport.ts";
import { SILENCE_LIMITS } from "../client/silence.ts";
import { DEADLINE_MS } from "../fuse/session.ts";

/** For requests at hand when the mount is gone: the kernel no longer waits for them, their effects count. */
export const DRAIN_LIMIT_MS = 30_000;
const HEARTBEAT_SECONDS = 30;
/** A busy machine may keep a daemon from its heartbeat for a few seconds. */
const HEARTBEAT_LEAST_SECONDS = 6;

export function silenceLimits(divisor: number): SilenceLimits {
  return Object.fromEntries(Object.entries(SILENCE_LIMITS).map(([name, limit]) => [name, limit / divisor]));
}

/** The limit of one request of the kernel, whatever it asks the network for. */
export function requestLimitMs(divisor: number): number {
  return DEADLINE_MS / divisor;
}

/** Then the supervisor takes the daemon for dead. */
export function heartbeatLimitSeconds(divisor: number): number {
  return Math.max(HEARTBEAT_LEAST_SECONDS, Math.ceil(HEARTBEAT_SECONDS / divisor));
}
