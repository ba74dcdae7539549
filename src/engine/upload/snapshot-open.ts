/**
 * A file that stays open for writing is cut when its writing has paused (cut-times.ts), and soon after an fsync. A cut
 * that meets a write is tried again. Writers that pass us by are looked for often enough that none waits longer.
 */

import { type Context, dueTime, inBackground, type LiveFile, lookAgainAtInode } from "../core/index.ts";
import { noteUnreadable, noticeWrites } from "../files/index.ts";
import { attemptAtOnce } from "./attempt.ts";
import { cutGeneration } from "./snapshot.ts";
import { dueAt, WRITING_PAUSE_MS } from "./snapshot-times.ts";

const BUSY_MS = 1_000;
const FAILED_MS = 30_000;
/** Between two looks for writers that pass us by: no longer than the shortest pause … */
const LOOK_MS = WRITING_PAUSE_MS;
/** … unless so many files are open that looking would take more than a thousandth of the time. */
const LOOK_EACH_MS = 50;

/** To be called after a change. Cheap: at most one timer a file. */
export function cutWhenQuiet(context: Context, live: LiveFile): void {
  if (live.cutTimer === undefined && mayBeWritten(live)) cutIn(context, live, untilDue(context, live));
}

/** It was, or it is to be found out. */
function mayBeWritten(live: LiveFile): boolean {
  return live.isWritten || live.noticed !== undefined;
}

/** fsync: what is safe here now should soon be safe there, but not once for each of many in a row. */
export function cutAfterSync(context: Context, live: LiveFile): void {
  if (!live.isWritten) return;
  const { runtime, settings } = context;
  const now = runtime.elapsed();
  const wait = Math.max(0, dueTime(settings, now, live.firstWriteAt ?? now) - now);
  if (live.cutTimer === undefined || now + wait < live.cutAt || live.isSynced) {
    live.isSynced = true;
    cutIn(context, live, wait);
  }
}

function cutIn(context: Context, live: LiveFile, milliseconds: number): void {
  const { runtime, bytes } = context;
  live.cutTimer?.cancel();
  live.cutTimer = undefined;
  if (live.writers === 0 || bytes.stopped.signal.aborted) return;
  live.cutAt = runtime.elapsed() + milliseconds;
  const timer = runtime.setTimer(milliseconds, () => {
    inBackground(context, "cutting an open file", async () => {
      const again = await look(context, live);
      // Nobody else sets one meanwhile but an fsync, or a writer after the last one.
      if (live.cutTimer !== timer) return;
      live.cutTimer = undefined;
      if (again !== undefined) cutIn(context, live, again);
    });
  });
  live.cutTimer = timer;
}

/** In how many milliseconds it is to be looked at again. */
async function look(context: Context, live: LiveFile): Promise<number | undefined> {
  if (!mayBeWritten(live) || live.writers === 0) return undefined;
  try {
    await noticeWrites(context, live);
    const left = live.isSynced && live.isWritten ? 0 : untilDue(context, live);
    if (left > 0) return left;
    const { signal } = context.bytes.stopped;
    const result = await cutGeneration(context, live.inode, signal, () => attemptAtOnce(context, live.inode));
    if (result === "busy") return BUSY_MS;
    context.bytes.unreadable.delete(live.lineage);
    live.isSynced = false;
    lookAgainAtInode(context, live.inode);
    return mayBeWritten(live) ? Math.max(LOOK_MS, untilDue(context, live)) : undefined;
  } catch (error) {
    if (context.bytes.stopped.signal.aborted) return undefined;
    noteUnreadable(context, live.inode, live.lineage, error);
    return FAILED_MS;
  }
}

/** Milliseconds until it is to be cut, or to be looked at for what was written. At most 0: now. */
function untilDue({ runtime, lives }: Context, live: LiveFile): number {
  if (!live.isWritten) return Math.max(LOOK_MS, LOOK_EACH_MS * lives.size);
  const { firstWriteAt: first = live.lastWriteAt, lastWriteAt: last } = live;
  return dueAt(live.pace, { first, last }) - runtime.elapsed();
}
