/**
 * Room on the disk of the state dir, for flows that are about to write there. A disk that was in trouble is looked at
 * again first.
 */

import { join } from "node:path";
import { minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import { hasCode } from "../../lib/system-error.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { evict } from "./evict.ts";
import type { LocalFiles } from "./room.ts";

/** Resolves when the disk can be written. Rejects with ENOSPC, EROFS or EIO. */
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
 * Tries again what a full disk refused, once cached files were evicted or removed files have gone. Must not know what
 * it tries.
 */

/** Freed at once, so that a long copy does not evict with every write. */
const ROOM = 32 * 1024 * 1024;

/** Contents of earlier versions go first, then cached files. True: some went. */
async function makeDiskRoom(context: Rows & LocalFiles & Remote & Host, bytes: number): Promise<boolean> {
  return (await removePast(context)) || (await evict(context, Math.max(bytes, ROOM))) > 0;
}

/** Any file of theirs may go at any time (history/past-contents.ts). */
async function removePast({ paths, runtime: { files } }: LocalFiles & Host): Promise<boolean> {
  const names = await files.list(paths.past).catch(() => []);
  for (const name of names) await files.remove(join(paths.past, name));
  return names.length > 0;
}

/** Runs `work` until the disk does not refuse it as full, as long as room can be made. Rejects as `work` does. */
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
 * Room that removals are about to give back. On a local disk a removed file is room at once. Here the bytes go a little
 * later, when the kernel has forgotten the file.
 */

/** Removed files are waited for so long after the last removal. */
const WAIT_MS = 1_000;
const STEP_MS = 20;

/** False: there is nothing to wait for. True: some time has passed, and it may be tried again. */
export async function waitForRemoved({
  fileState,
  runtime,
}: Pick<LocalFiles & Host, "fileState" | "runtime">): Promise<boolean> {
  const { signal } = fileState.stopped;
  const { removedAt } = fileState;
  if (signal.aborted || removedAt === undefined || minus(runtime.elapsed(), removedAt) >= WAIT_MS) return false;
  await sleep(runtime, STEP_MS, signal);
  return true;
}
