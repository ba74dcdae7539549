/**
 * Passthrough: the kernel reads, writes and maps a local file itself, and we hear of OPEN, FLUSH, FSYNC
 * and RELEASE only. A live file is passed on or served by us, as its first handle was, until its last
 * one is gone: the kernel refuses a mixture.
 *
 * A writer that is passed on counts as one who writes at any moment: before it is let in, everything is
 * done that must be done before a first byte changes, and whether it wrote is found out from the file's
 * size and times whenever the rows have to be true (notice-writes.ts).
 */
import { HELD } from "../../metadata/inodes.ts";
import type { Context, LiveFile } from "../core/index.ts";
import { requireCurrent } from "./backing-file.ts";
import { tellWritten } from "./dirty-file-log.ts";
import { markWritten, noLongerSafe } from "./set-dirty.ts";
import { isTight } from "./space.ts";
import { lookAtFile } from "./write-detection.ts";

const SET_ID = 0o6000;
/** Bytes of the disk. With fewer a writer may hear that it is full before anybody looks, and cached files make way. */
const WRITERS_ROOM = 1024 ** 3;

/** For each handle, once the file is open: the id to answer with, or undefined: we serve it. */
export async function passOn(context: Context, live: LiveFile, write: boolean): Promise<number | undefined> {
  if (live.handles === 0 && mayPass(context, live) && (!write || context.disk.available >= WRITERS_ROOM)) {
    live.backing = context.passthrough.register(live.file.descriptor ?? -1);
  }
  live.handles += 1;
  if (live.backing !== undefined && write) {
    live.passedWriters += 1;
    try {
      await letIn(context, live);
    } catch (error) {
      endPassing(context, live, write);
      throw error;
    }
  }
  return live.backing;
}

/** The end of a handle; before closeLive. */
export function endPassing(context: Context, live: LiveFile, write: boolean): void {
  if (live.backing !== undefined && write) live.passedWriters -= 1;
  live.handles -= 1;
  if (live.handles > 0 || live.backing === undefined) return;
  context.passthrough.unregister(live.backing);
  live.backing = undefined;
}

/**
 * All bytes are there and are what they should be, and the row says so: it hears of no write, and what it says is
 * missing, or the origin's, a crash would bring again over what was written. Should somebody write to it, now or while
 * it is passed on: nobody counts how much, no change has to clear bits of the mode, and it is not held until it is saved.
 */
function mayPass(context: Context, live: LiveFile): boolean {
  const { passthrough, disk } = context;
  if (!passthrough.isOn || live.file.descriptor === undefined) return false;
  if (!live.isKept || disk.trouble !== undefined || live.missing.length > 0 || !live.isChecked) return false;
  if (live.recorded.length > 0 || live.unproven.length > 0) return false;
  const { synced, attributes } = requireCurrent(context, live.lineage);
  if (synced === HELD || ((attributes.mode ?? 0) & SET_ID) !== 0) return false;
  return !isTight(context);
}

/** From when this resolves, bytes may change at any moment without a word. */
export async function letIn(context: Context, live: LiveFile): Promise<void> {
  live.lettingIn ??= prepare(context, live).finally(() => {
    live.lettingIn = undefined;
  });
  await live.lettingIn;
}

async function prepare(context: Context, live: LiveFile): Promise<void> {
  if (live.noticed !== undefined) return;
  for (;;) {
    expectWrites(context, live);
    await context.staged.flush();
    if (live.isSafe) await noLongerSafe(context, live);
    const { changes } = requireCurrent(context, live.lineage);
    const seen = await lookAtFile(context, live);
    // A cut or a sync that began before may have ended meanwhile, and say that the file stays as it is.
    const isSaid =
      !live.isSafe && requireCurrent(context, live.lineage).changes === changes && isExpected(context, live);
    if (!isSaid) continue;
    Object.assign(live, seen);
    break;
  }
  context.runtime.step("passthrough: writer let in");
}

/** The rows say so already. */
function isExpected(context: Context, live: LiveFile): boolean {
  return live.isWritten || requireCurrent(context, live.lineage).content !== "dirty";
}

/** After a crash the rows say that the file may have changed, and the list of changed files names it. */
function expectWrites(context: Context, live: LiveFile): void {
  const { metadata } = context;
  const inode = requireCurrent(context, live.lineage);
  if (inode.content === "dirty") {
    if (!live.isWritten) markWritten(context, live);
    return;
  }
  // "open" since the writer came; its hash tells after a crash whether anything was written.
  tellWritten(context, metadata.inodes.update(inode.id, { changes: inode.changes + 1 }), live);
}
