/** Before something is put on the disk of the state dir: where it was in trouble, it is looked at again first. */

import { sleep } from "../../lib/runtime.ts";
import { hasCode } from "../../lib/system-error.ts";
import { FsError } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import { evict } from "./evict.ts";

/** Rejects with ENOSPC, EROFS or EIO. */
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
 * What needs room on the disk, tried again once cached files have made way, or removed ones have gone.
 * It must not know what it is.
 */

/** Set free at once, so that not every write of a copy under way evicts. */
const ROOM = 32 * 1024 * 1024;

/** Cached files go. Whether any did. */
async function makeDiskRoom(context: Rows & LocalFiles & Remote & Host, bytes: number): Promise<boolean> {
  return (await evict(context, Math.max(bytes, ROOM))) > 0;
}

/** `work`, and again where a full disk refused it, for as long as room could be made. */
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
 * Room that removals are about to give back. On a local disk removing a file is room for the next one
 * at once; here the bytes go when the kernel says that it forgot the file, a little later.
 */

/** So long after the last removal it is waited for. */
const WAIT_MS = 1_000;
const STEP_MS = 20;

/** False: there is nothing to wait for. True: some time has passed, and it may be tried again. */
export async function waitForRemoved({
  fileState,
  runtime,
}: Pick<LocalFiles & Host, "fileState" | "runtime">): Promise<boolean> {
  const { signal } = fileState.stopped;
  if (signal.aborted || runtime.elapsed() - fileState.removedAt >= WAIT_MS) return false;
  await sleep(runtime, STEP_MS, signal);
  return true;
}
