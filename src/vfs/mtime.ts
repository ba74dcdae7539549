/** The time of last modification as the rows have it; while a file is open for writing its live file knows better. */
import { parseTime, type Time, timeFromMilliseconds } from "../lib/time.ts";
import type { Inode } from "../metadata/inodes.ts";
import type { Context } from "./context.ts";

const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

/** One that nobody set is the time the gateway changed the node. */
export function mtimeOf(context: Pick<Context, "metadata">, inode: Inode): Time {
  const { mtime } = inode.attributes;
  const own = mtime === undefined ? undefined : parseTime(mtime);
  if (own !== undefined) return own;
  for (const entry of context.metadata.entries.ofInode(inode.id)) {
    const base = context.metadata.nodes.ofEntry(entry.id)?.base;
    if (base != null) return timeFromMilliseconds(Date.parse(base.modifiedAt));
  }
  return parseTime(inode.ctime) ?? EPOCH;
}
