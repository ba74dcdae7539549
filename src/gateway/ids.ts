/**
 * Ids of nodes and versions: UUIDs of version 7, each one after those before it. Rows and their
 * indices then grow at one end, where many changes of one commit share a page: with ids in no
 * order each new node costs four pages of its own. Only speed hangs on the order: a clock that
 * jumps, a restart, and ids of an older program do no harm.
 */
import type { Clock } from "../lib/runtime.ts";

/** Ids of one millisecond. */
const IDS_PER_MS = 0x1000;

export function createIds(clock: Pick<Clock, "now" | "uuid">): () => string {
  let time = 0;
  let count = 0;
  return () => {
    const now = Math.floor(clock.now());
    if (now > time) [time, count] = [now, 0];
    else if (++count === IDS_PER_MS) [time, count] = [time + 1, 0];
    const stamp = time.toString(16).padStart(12, "0");
    // What follows in a UUID of version 4 is its variant and 62 bits of chance.
    return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${count.toString(16).padStart(3, "0")}${clock.uuid().slice(18)}`;
  };
}
