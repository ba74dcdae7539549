/** The times of last modification and change as the rows have them; while a file is open for writing its live file knows better. */
import type { Attributes } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import { clampTime, compareTimes, formatTime, parseTime, type Time, timeFromMilliseconds } from "../../lib/time.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Rows } from "../core/index.ts";

const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

/**
 * Content on its way to another node: a time that was only the node's default becomes its own, for
 * there the default would be another. Runs inside the caller's transaction.
 */
export function pinMtime(context: Pick<Rows, "metadata">, inodeId: InodeId): void {
  const inode = context.metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind === "folder" || inode.attributes.mtime !== undefined) return;
  const mtime = formatTime(mtimeOf(context, inode));
  context.metadata.inodes.update(inodeId, { attributes: { ...inode.attributes, mtime } });
}

/** The same of a node's attributes, whose content is taken over and will go on to other nodes. */
export function withPinnedMtime(attributes: Attributes, { modifiedAt }: Node): Attributes {
  return { mtime: formatTime(timeFromMilliseconds(Date.parse(modifiedAt))), ...attributes };
}

/** One that nobody set is the time the gateway changed the node; one that no disk holds, as a live file would have it. */
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
 * The time of the last change of an inode whose file has this mtime. One that the rows (`known`) have not heard of is a
 * write, which has changed both times, or is being set to a time to come; one that a program has set they know, and when.
 * What the rows have is later where another change came after the write, or by a clock that was ahead of this one.
 */
export function ctimeOf({ ctime }: Inode, known: Time, mtime: Time, present: Time): Time {
  const changed = parseTime(ctime) ?? EPOCH;
  if (compareTimes(mtime, known) === 0) return changed;
  const isAhead = (time: Time) => compareTimes(time, present) > 0;
  const written = isAhead(mtime) ? present : mtime;
  return compareTimes(changed, written) > 0 && !isAhead(changed) ? changed : written;
}
