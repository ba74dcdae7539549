/**
 * A snapshot of a file that stays open for writing is taken when the writing pauses (snapshot-times.ts), and soon after
 * an fsync. If a write comes in between, the snapshot is tried again. Write detection runs often enough that changes of
 * passthrough writers do not wait longer than others.
 */

import { laterOf, minus, plus } from "../../lib/clocks.ts";
import type { CacheFile, Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { attemptAtOnce } from "./attempt.ts";
import { takeSnapshot } from "./snapshot.ts";
import { nextSnapshotAt, SNAPSHOT_AGAIN_MS, WRITING_PAUSE_MS } from "./snapshot-times.ts";

const FAILED_MS = 30_000;
/** The time between two write detections of passthrough writers, while few files are open: the shortest pause. */
const LOOK_MS = WRITING_PAUSE_MS;
/**
 * The time between two write detections, in milliseconds per open file. With many open files it is longer than LOOK_MS,
 * so that write detection takes no more than a thousandth of the time.
 */
const LOOK_EACH_MS = 50;

/** Call this after a change. It is cheap: at most one timer per file. */
export function snapshotWhenQuiet(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync,
  cacheFile: CacheFile,
): void {
  if (cacheFile.pacing.nextLookAt === undefined && mayBeWritten(cacheFile))
    snapshotIn(context, cacheFile, untilDue(context, cacheFile));
}

/** A file with a passthrough writer may be written at any moment, and only write detection finds out. */
function mayBeWritten(cacheFile: CacheFile): boolean {
  return cacheFile.isContentDirty || cacheFile.hasPassthroughWriter;
}

/** A program called fsync: the content should soon be at the gateway, but not each of many fsyncs in a row. */
export function snapshotAfterSync(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync,
  cacheFile: CacheFile,
): void {
  if (!cacheFile.isContentDirty) return;
  const { runtime } = context;
  const now = runtime.elapsed();
  const due = laterOf(now, context.queue.dueTime(now, cacheFile.firstWriteAt ?? now));
  const { nextLookAt, isFsyncAsked } = cacheFile.pacing;
  if (nextLookAt === undefined || due < nextLookAt || isFsyncAsked) {
    cacheFile.pacing.askForFsync();
    snapshotIn(context, cacheFile, minus(due, now));
  }
}

function snapshotIn(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync,
  cacheFile: CacheFile,
  milliseconds: number,
): void {
  const { runtime, fileState } = context;
  cacheFile.pacing.cancelLook();
  if (cacheFile.writers === 0 || fileState.stopped.aborted) return;
  const at = plus(runtime.elapsed(), milliseconds);
  const timer = runtime.setTimer(milliseconds, () => {
    context.background("taking a snapshot of an open file", async () => {
      const again = await look(context, cacheFile);
      // Meanwhile only an fsync sets another timer, or a writer that came after the last one had closed the file.
      if (cacheFile.pacing.lookIsOver(timer) && again !== undefined) snapshotIn(context, cacheFile, again);
    });
  });
  cacheFile.pacing.planLook(timer, at);
}

/** Takes a snapshot if it is due. Returns the milliseconds until the next look; undefined: after another change. */
async function look(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync,
  cacheFile: CacheFile,
): Promise<number | undefined> {
  if (!mayBeWritten(cacheFile) || cacheFile.writers === 0) return undefined;
  try {
    await cacheFile.detectWrites();
    const left = cacheFile.pacing.isFsyncAsked && cacheFile.isContentDirty ? 0 : untilDue(context, cacheFile);
    if (left > 0) return left;
    const signal = context.fileState.stopped;
    const result = await takeSnapshot(context, cacheFile.inode, signal, () => attemptAtOnce(context, cacheFile.inode));
    if (result === "busy") return SNAPSHOT_AGAIN_MS;
    context.readFailures.ended(cacheFile.kernelNodeId);
    cacheFile.pacing.fsyncAnswered();
    context.queue.enqueueInode(cacheFile.inode);
    return mayBeWritten(cacheFile) ? Math.max(LOOK_MS, untilDue(context, cacheFile)) : undefined;
  } catch (error) {
    if (context.fileState.stopped.aborted) return undefined;
    context.readFailures.note(cacheFile.inode, cacheFile.kernelNodeId, error);
    return FAILED_MS;
  }
}

/** Milliseconds until a snapshot is to be taken, or until the next write detection. 0 or less: now. */
function untilDue({ runtime, cacheFiles }: LocalFiles & Host, cacheFile: CacheFile): number {
  if (!cacheFile.isContentDirty) return Math.max(LOOK_MS, LOOK_EACH_MS * cacheFiles.size);
  const { lastWriteAt: last, firstWriteAt: first = last } = cacheFile;
  return minus(nextSnapshotAt(cacheFile.pacing.pace, { first, last }), runtime.elapsed());
}
