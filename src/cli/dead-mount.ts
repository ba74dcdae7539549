/**
 * Detaches mounts whose daemon is gone. Two commands may want that at once. If the slower one detached by the path
 * alone, it would hit a mount that was made meanwhile. So they take turns by a lock, and each looks again first.
 */
import { join } from "node:path";
import { detach } from "../daemon/detach.ts";
import { lockFile } from "../daemon/lock-file.ts";
import { type MountEntry, mountAt, mountedBy, readMountTable } from "../daemon/mount-table.ts";
import { makeRuntimeFolder } from "../daemon/runtime-folder.ts";
import { userFolders } from "./environment.ts";
import { Failure } from "./failure.ts";
import { serving } from "./find-mount.ts";
import { isDead } from "./is-dead.ts";
import { pollUntil } from "./poll.ts";

const LOCK_LIMIT_MS = 30_000;

/** True: the mount is detached, or was gone already. False: it is not dead. Rejects with a Failure. */
export async function detachDead(mount: MountEntry): Promise<boolean> {
  const { runtime } = userFolders();
  makeRuntimeFolder(runtime);
  const lock = lockFile(join(runtime, "detach.lock"));
  try {
    if (!(await pollUntil(lock.take, LOCK_LIMIT_MS))) {
      throw new Failure(`another command has been detaching a mount for ${LOCK_LIMIT_MS / 1000} s`);
    }
    const now = mountAt(readMountTable(), mount.mountpoint);
    if (now === undefined || now.id !== mount.id || now.connection !== mount.connection) return true;
    if (serving(now).served !== undefined || !(await isDead(now))) return false;
    await detach(now.mountpoint, mountedBy(now));
    return true;
  } finally {
    lock.close();
  }
}
