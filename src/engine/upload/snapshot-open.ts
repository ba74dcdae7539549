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
export function snapshotWhenQuiet(context: Context, cacheFile: CacheFile): void {
  if (cacheFile.pacing.snapshotTimer === undefined && mayBeWritten(cacheFile))
    snapshotIn(context, cacheFile, untilDue(context, cacheFile));
}

/** It was, or it is to be found out. */
function mayBeWritten(cacheFile: CacheFile): boolean {
  return cacheFile.changes.isContentDirty || cacheFile.passthrough.lastStat !== undefined;
}

/** fsync: what is safe here now should soon be safe there, but not once for each of many in a row. */
export function snapshotAfterSync(context: Context, cacheFile: CacheFile): void {
  if (!cacheFile.changes.isContentDirty) return;
  const { runtime, settings } = context;
  const now = runtime.elapsed();
  const wait = Math.max(0, dueTime(settings, now, cacheFile.changes.firstWriteAt ?? now) - now);
  if (
    cacheFile.pacing.snapshotTimer === undefined ||
    now + wait < cacheFile.pacing.snapshotAt ||
    cacheFile.changes.isFsyncAsked
  ) {
    cacheFile.changes.isFsyncAsked = true;
    snapshotIn(context, cacheFile, wait);
  }
}

function snapshotIn(context: Context, cacheFile: CacheFile, milliseconds: number): void {
  const { runtime, fileState } = context;
  cacheFile.pacing.snapshotTimer?.cancel();
  cacheFile.pacing.snapshotTimer = undefined;
  if (cacheFile.use.writers === 0 || fileState.stopped.signal.aborted) return;
  cacheFile.pacing.snapshotAt = runtime.elapsed() + milliseconds;
  const timer = runtime.setTimer(milliseconds, () => {
    inBackground(context, "cutting an open file", async () => {
      const again = await look(context, cacheFile);
      // Nobody else sets one meanwhile but an fsync, or a writer after the last one.
      if (cacheFile.pacing.snapshotTimer !== timer) return;
      cacheFile.pacing.snapshotTimer = undefined;
      if (again !== undefined) snapshotIn(context, cacheFile, again);
    });
  });
  cacheFile.pacing.snapshotTimer = timer;
}

/** In how many milliseconds it is to be looked at again. */
async function look(context: Context, cacheFile: CacheFile): Promise<number | undefined> {
  if (!mayBeWritten(cacheFile) || cacheFile.use.writers === 0) return undefined;
  try {
    await detectWrites(context, cacheFile);
    const left = cacheFile.changes.isFsyncAsked && cacheFile.changes.isContentDirty ? 0 : untilDue(context, cacheFile);
    if (left > 0) return left;
    const { signal } = context.fileState.stopped;
    const result = await takeSnapshot(context, cacheFile.inode, signal, () => attemptAtOnce(context, cacheFile.inode));
    if (result === "busy") return BUSY_MS;
    context.fileState.unreadable.delete(cacheFile.lineage);
    cacheFile.changes.isFsyncAsked = false;
    enqueueInode(context, cacheFile.inode);
    return mayBeWritten(cacheFile) ? Math.max(LOOK_MS, untilDue(context, cacheFile)) : undefined;
  } catch (error) {
    if (context.fileState.stopped.signal.aborted) return undefined;
    noteUnreadable(context, cacheFile.inode, cacheFile.lineage, error);
    return FAILED_MS;
  }
}

/** Milliseconds until it is to be cut, or to be looked at for what was written. At most 0: now. */
function untilDue({ runtime, cacheFiles }: LocalFiles & Host, cacheFile: CacheFile): number {
  if (!cacheFile.changes.isContentDirty) return Math.max(LOOK_MS, LOOK_EACH_MS * cacheFiles.size);
  const { firstWriteAt: first = cacheFile.changes.lastWriteAt, lastWriteAt: last } = cacheFile.changes;
  return nextSnapshotAt(cacheFile.pacing.pace, { first, last }) - runtime.elapsed();
}
