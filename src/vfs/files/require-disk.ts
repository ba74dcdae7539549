/** Before something is put on the disk of the state dir: where it was in trouble, it is looked at again first. */
import type { Context } from "../context/context.ts";
import { FsError } from "../errors.ts";
import { waitForRemoved } from "./removed-room.ts";

/** Rejects with ENOSPC, EROFS or EIO. */
export async function requireDisk(context: Context): Promise<void> {
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
