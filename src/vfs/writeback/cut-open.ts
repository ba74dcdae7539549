/**
 * When a file that stays open for writing is cut: after it was quiet for a while, at the latest some
 * minutes after the first change, and soon after an fsync. A cut that meets a write is tried again.
 */

import { inBackground } from "../context/byte-state.ts";
import { dueTime, lookAgainAtInode } from "../context/changes.ts";
import type { Context } from "../context/context.ts";
import type { LiveFile } from "../context/live-file.ts";
import { noticeWrites } from "../files/notice-writes.ts";
import { noteUnreadable } from "../files/unreadable.ts";
import { attemptAtOnce } from "./attempt.ts";
import { cutGeneration } from "./cut.ts";

const QUIET_MS = 30_000;
const AGE_MAX_MS = 5 * 60_000;
const BUSY_MS = 1_000;

/** To be called after a change. Cheap: at most one timer a file. */
export function cutWhenQuiet(context: Context, live: LiveFile): void {
  if (live.cutTimer === undefined && mayBeWritten(live)) cutIn(context, live, QUIET_MS);
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
  live.cutTimer = runtime.setTimer(milliseconds, () => {
    live.cutTimer = undefined;
    inBackground(context, "cutting an open file", () => look(context, live));
  });
}

async function look(context: Context, live: LiveFile): Promise<void> {
  if (!mayBeWritten(live) || live.writers === 0) return;
  let again = BUSY_MS;
  try {
    const left = await untilDue(context, live);
    if (left > 0) return cutIn(context, live, left);
    const { signal } = context.bytes.stopped;
    if ((await cutGeneration(context, live.inode, signal, () => attemptAtOnce(context, live.inode))) !== "busy") {
      context.bytes.unreadable.delete(live.lineage);
      live.isSynced = false;
      lookAgainAtInode(context, live.inode);
      if (live.noticed !== undefined) cutIn(context, live, QUIET_MS);
      return;
    }
  } catch (error) {
    if (context.bytes.stopped.signal.aborted) return;
    again = QUIET_MS;
    noteUnreadable(context, live.inode, live.lineage, error);
  }
  cutIn(context, live, again);
}

/** Milliseconds, at most 0: now. */
async function untilDue(context: Context, live: LiveFile): Promise<number> {
  await noticeWrites(context, live);
  if (!live.isWritten) return QUIET_MS;
  if (live.isSynced) return 0;
  const now = context.runtime.elapsed();
  return Math.min(live.lastWriteAt + QUIET_MS, (live.firstWriteAt ?? now) + AGE_MAX_MS) - now;
}
