/** Waits for events without a notification, such as the end of a process that is not our child. */
import { setTimeout as pause } from "node:timers/promises";

const INTERVAL_MS = 10;

/** True if `condition` came true within `limitMs`. */
export async function pollUntil(condition: () => boolean, limitMs = Number.POSITIVE_INFINITY): Promise<boolean> {
  const end = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() >= end) return false;
    await pause(INTERVAL_MS);
  }
  return true;
}
