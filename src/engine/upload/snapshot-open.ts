/**
 * A file that stays open for writing is cut when its writing has paused (cut-times.ts), and soon after an fsync. A cut
 * that meets a write is tried again. Writers that pass us by are looked for often enough that none waits longer.
 */

import {
  type CacheFile,
  type Context,
  dueTime,
  enqueueInode,
  type Host,
  inBackground,
  type LocalFiles,
} from "../core/index.ts";
import { detectWrites, noteUnreadable } from "../files/index.ts";
import { attemptAtOnce } from "./attempt.ts";
import { takeSnapshot } from "./snapshot.ts";
import { nextSnapshotAt, WRITING_PAUSE_MS } from "./snapshot-times.ts";

const BUSY_MS = 1_000;
const FAILED_MS = 30_000;
/** Between two looks for writers that pass us by: no longer than the shortest pause … */
const LOOK_MS = WRITING_PAUSE_MS;
/** … unless so many files are open that looking would take more than a thousandth of the time. */
const LOOK_EACH_MS = 50;

/** To be called after a change. Cheap: at most one timer a file. */
export function snapshotWhenQuiet(context: Context, live: CacheFile): void {
  if (live.pacing.snapshotTimer === undefined && mayBeWritten(live)) cutIn(context, live, untilDue(context, live));
}

/** It was, or it is to be found out. */
function mayBeWritten(live: CacheFile): boolean {
  return live.changes.isContentDirty || live.passthrough.lastStat !== undefined;
}

/** fsync: what is safe here now should soon be safe there, but not once for each of many in a row. */
export function snapshotAfterSync(context: Context, live: CacheFile): void {
  if (!live.changes.isContentDirty) return;
  const { runtime, settings } = context;
  const now = runtime.elapsed();
  const wait = Math.max(0, dueTime(settings, now, live.changes.firstWriteAt ?? now) - now);
  if (live.pacing.snapshotTimer === undefined || now + wait < live.pacing.snapshotAt || live.changes.isFsyncAsked) {
    live.changes.isFsyncAsked = true;
    cutIn(context, live, wait);
  }
}

function cutIn(context: Context, live: CacheFile, milliseconds: number): void {
  const { runtime, fileState } = context;
  live.pacing.snapshotTimer?.cancel();
  live.pacing.snapshotTimer = undefined;
  if (live.use.writers === 0 || fileState.stopped.signal.aborted) return;
  live.pacing.snapshotAt = runtime.elapsed() + milliseconds;
  const timer = runtime.setTimer(milliseconds, () => {
    inBackground(context, "cutting an open file", async () => {
      const again = await look(context, live);
      // Nobody else sets one meanwhile but an fsync, or a writer after the last one.
      if (live.pacing.snapshotTimer !== timer) return;
      live.pacing.snapshotTimer = undefined;
      if (again !== undefined) cutIn(context, live, again);
    });
  });
  live.pacing.snapshotTimer = timer;
}

/** In how many milliseconds it is to be looked at again. */
async function look(context: Context, live: CacheFile): Promise<number | undefined> {
  if (!mayBeWritten(live) || live.use.writers === 0) return undefined;
  try {
    await detectWrites(context, live);
    const left = live.changes.isFsyncAsked && live.changes.isContentDirty ? 0 : untilDue(context, live);
    if (left > 0) return left;
    const { signal } = context.fileState.stopped;
    const result = await takeSnapshot(context, live.inode, signal, () => attemptAtOnce(context, live.inode));
    if (result === "busy") return BUSY_MS;
    context.fileState.unreadable.delete(live.lineage);
    live.changes.isFsyncAsked = false;
    enqueueInode(context, live.inode);
    return mayBeWritten(live) ? Math.max(LOOK_MS, untilDue(context, live)) : undefined;
  } catch (error) {
    if (context.fileState.stopped.signal.aborted) return undefined;
    noteUnreadable(context, live.inode, live.lineage, error);
    return FAILED_MS;
  }
}

/** Milliseconds until it is to be cut, or to be looked at for what was written. At most 0: now. */
function untilDue({ runtime, cacheFiles }: LocalFiles & Host, live: CacheFile): number {
  if (!live.changes.isContentDirty) return Math.max(LOOK_MS, LOOK_EACH_MS * cacheFiles.size);
  const { firstWriteAt: first = live.changes.lastWriteAt, lastWriteAt: last } = live.changes;
  return nextSnapshotAt(live.pacing.pace, { first, last }) - runtime.elapsed();
}
