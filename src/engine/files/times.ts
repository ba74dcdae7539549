/**
 * Times of modification and change, as the rows have them. While a file is open for writing, the times of the cache
 * file are newer.
 */
import { clampTime, compareTimes, formatTime, parseTime, type Time, timeFromMilliseconds } from "../../lib/time.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Rows } from "../core/index.ts";

const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

/**
 * The content is about to go to another node. If its mtime is only the default of its node, it becomes an attribute of
 * its own, because the other node has another default. Call it in a transaction.
 */
export function pinMtime(context: Pick<Rows, "metadata">, inodeId: InodeId): void {
  const inode = context.metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind === "folder" || inode.attributes.mtime !== undefined) return;
  const mtime = formatTime(mtimeOf(context, inode));
  context.metadata.inodes.update(inodeId, { attributes: { ...inode.attributes, mtime } });
}

/**
 * The mtime attribute; without one, the time at which the gateway changed the node. A time that no disk can hold is
 * clamped, as the disk would clamp it.
 */
export function mtimeOf(context: Pick<Rows, "metadata">, inode: Inode): Time {
  const { mtime } = inode.attributes;
  const own = mtime === undefined ? undefined : parseTime(mtime);
  if (own !== undefined) return clampTime(own);
  for (const entry of context.metadata.entries.ofInode(inode.id)) {
    const base = context.metadata.nodes.ofEntry(entry.id)?.base;
    if (base != null) return timeFromMilliseconds(Date.parse(base.modifiedAt));
  }
  return parseTime(inode.ctime) ?? EPOCH;
}

/**
 * The ctime of an inode whose file has this mtime. `known`: the mtime in the rows. `present`: the time now.
 * - The mtimes are equal: the ctime in the rows is right, also after a program has set the mtime.
 * - They differ: a write changed both times of the file, or a program is setting the mtime to a future time. Then the
 *   ctime is the mtime, but not later than `present`.
 * - The rows may have an even later ctime. It stays, because another change came after the write. If it is later than
 *   `present`, it comes from a clock that was ahead of this one, and does not count.
 */
export function ctimeOf({ ctime }: Inode, known: Time, mtime: Time, present: Time): Time {
  const changed = parseTime(ctime) ?? EPOCH;
  if (compareTimes(mtime, known) === 0) return changed;
  const isAhead = (time: Time) => compareTimes(time, present) > 0;
  const written = isAhead(mtime) ? present : mtime;
  return compareTimes(changed, written) > 0 && !isAhead(changed) ? changed : written;
}
