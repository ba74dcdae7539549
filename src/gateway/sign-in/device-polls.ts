/**
 * Limits how often a device asks whether it was approved (RFC 8628 §3.5). Each poll that comes too soon lengthens its
 * interval by five seconds.
 */
import { LRUCache } from "lru-cache";
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import type { Clock } from "../../lib/runtime.ts";

/** After the approval, the device learns of it within this time. */
export const POLL_SECONDS = 2;
const SLOWER_MS = 5000;
/** A slow line brings two polls close together. */
const TOLERANCE_MS = 1000;
const DEVICES = 10_000;

export function createDevicePolls(clock: Pick<Clock, "elapsed">) {
  const polls = new LRUCache<string, { at: ElapsedTime; intervalMs: number }>({ max: DEVICES });
  return {
    /** Counts a poll. False: it came too soon. */
    isInTime(deviceCode: string): boolean {
      const now = clock.elapsed();
      const before = polls.get(deviceCode);
      const intervalMs = before?.intervalMs ?? POLL_SECONDS * 1000;
      const isInTime = before === undefined || minus(now, before.at) >= intervalMs - TOLERANCE_MS;
      polls.set(deviceCode, { at: now, intervalMs: isInTime ? intervalMs : intervalMs + SLOWER_MS });
      return isInTime;
    },
  };
}
