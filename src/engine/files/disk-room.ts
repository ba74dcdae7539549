/** Room on the disk of the state dir, for flows that are about to write there. */

import { join } from "node:path";
import { minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import { hasCode } from "../../lib/system-error.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { evict } from "./evict.ts";
import type { LocalFiles } from "./room.ts";

/** Resolves when the disk can be written. A disk in trouble is looked at again. Rejects with ENOSPC, EROFS or EIO. */
export async function requireDisk(context: LocalFiles & Host): Promise<void> {
  const { disk } = context;
  for (;;) {
    disk.requireChangeable();
    if (disk.trouble === undefined && disk.hasRows) return;
    await context.space.look();
    disk.requireChangeable();
    if (disk.trouble === undefined && disk.hasRows) return;
    if (!(await waitForRemoved(context))) throw new FsError("ENOSPC", disk.reason ?? "the disk is full");
  }
}

/*
 * Repeats work that a full disk refused, after cached files were evicted or removed files have gone. It must not know
 * what the work is.
 */

/** Bytes. At least so much is freed at a time, so that a long copy does not evict with every write. */
const ROOM = 32 * 1024 * 1024;

/** Removes the contents of past versions, or evicts cached files if there are none. True: some went. */
async function makeDiskRoom(context: Rows & LocalFiles & Remote & Host, bytes: number): Promise<boolean> {
  return (await removePast(context)) || (await evict(context, Math.max(bytes, ROOM))) > 0;
}

/** Removes the contents of past versions. They may go at any time (history/past-contents.ts). */
async function removePast({ paths, runtime: { files } }: LocalFiles & Host): Promise<boolean> {
  const names = await files.list(paths.past).catch(() => []);
  for (const name of names) await files.remove(join(paths.past, name));
  return names.length > 0;
}

/**
 * Runs `work`, and repeats it as long as the disk refuses it as full and room can be made for `bytes` more bytes.
 * Rejects as `work` does.
 */
export async function despiteFullDisk<T>(
  context: Rows & LocalFiles & Remote & Host,
  bytes: number,
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error)) throw error;
      if (!(await makeDiskRoom(context, bytes)) && !(await waitForRemoved(context))) throw error;
    }
  }
}

function isFull(error: unknown): boolean {
  return hasCode(error, "ENOSPC", "EDQUOT");
}

/*
 * Room that removals are about to give back. On a local disk, removing a file makes room at once. Here the bytes go a
 * little later, when the kernel has forgotten the file.
 */

/** For this time after the last removal, callers wait for the room. */
const WAIT_MS = 1_000;
const STEP_MS = 20;

/** True: some time has passed, and the work may be tried again. False: there is nothing to wait for. */
async function waitForRemoved({
  fileState,
  runtime,
}: Pick<LocalFiles & Host, "fileState" | "runtime">): Promise<boolean> {
  const signal = fileState.stopped;
  const { removedAt } = fileState;
  if (signal.aborted || removedAt === undefined || minus(runtime.elapsed(), removedAt) >= WAIT_MS) return false;
  await sleep(runtime, STEP_MS, signal);
  return true;
}
