/**
 * Ids of nodes and versions: UUIDs of version 7, in the order of their milliseconds. Rows and their
 * indices then grow at one end, where many changes of one commit share a page: with ids in no order
 * each new node costs four pages of its own. Only speed hangs on the order: a clock that jumps, and
 * ids of an older program, do no harm. All other bits are chance: nobody guesses one from others.
 */
import type { Clock } from "../lib/runtime.ts";

export function createIds(clock: Pick<Clock, "wallClock" | "uuid">): () => string {
  let time = 0;
  return () => {
    time = Math.max(time, Math.floor(clock.wallClock()));
    const stamp = time.toString(16).padStart(12, "0");
    // What follows the version in a UUID of version 4 is its variant and 74 bits of chance.
    return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${clock.uuid().slice(15)}`;
  };
}
