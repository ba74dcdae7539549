/**
 * Times of modification and change, as the rows have them. While a file is open for writing, the cache file has the
 * newer ones.
 */
import { clampTime, compareTimes, formatTime, parseTime, type Time, timeFromMilliseconds } from "../../lib/time.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Rows } from "../core/index.ts";

const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

/**
 * The content is about to go to another node. A mtime that was only the node's default becomes the content's own,
 * because the other node would have another default. Call it in a transaction.
 */
export function pinMtime(context: Pick<Rows, "metadata">, inodeId: InodeId): void {
  const inode = context.metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind === "folder" || inode.attributes.mtime !== undefined) return;
  const mtime = formatTime(mtimeOf(context, inode));
  context.metadata.inodes.update(inodeId, { attributes: { ...inode.attributes, mtime } });
}

/**
 * If no program set it, the time at which the gateway changed the node. A time that no disk can hold is shown as the
 * cache file would have it.
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
 * The ctime of an inode whose file has this mtime. If the rows know another mtime (`known`), a write came that changed
 * both times, or a program is setting the mtime to a future time. A time that a program has set is in the rows, and so
 * is when it did. The rows may have a later ctime: another change came after the write (the later ctime stays), or it
 * was written by a clock that was ahead of this one (it does not count).
 */
export function ctimeOf({ ctime }: Inode, known: Time, mtime: Time, present: Time): Time {
  const changed = parseTime(ctime) ?? EPOCH;
  if (compareTimes(mtime, known) === 0) return changed;
  const isAhead = (time: Time) => compareTimes(time, present) > 0;
  const written = isAhead(mtime) ? present : mtime;
  return compareTimes(changed, written) > 0 && !isAhead(changed) ? changed : written;
}
