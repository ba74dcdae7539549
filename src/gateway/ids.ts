/**
 * Ids of nodes and versions: UUIDs of version 7, in the order of their milliseconds. So rows and their indices grow at
 * one end, where many changes of one commit share a page. With ids in no order each new node costs four pages of its
 * own. Only speed depends on the order: a clock that jumps, and ids of an older program, do no harm. All other bits are
 * random: one id cannot be guessed from others.
 */
import type { Clock } from "../lib/runtime.ts";

export function createIds(clock: Pick<Clock, "wallClock" | "uuid">): () => string {
  let time = 0;
  return () => {
    time = Math.max(time, Math.floor(clock.wallClock()));
    const stamp = time.toString(16).padStart(12, "0");
    // In a UUID of version 4 the version is followed by the variant and 74 random bits.
    return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${clock.uuid().slice(15)}`;
  };
}
