/**
 * Mounts whose daemon is gone: whether one is dead, and taking it off. Two commands may want that at
 * once, and a mount made meanwhile must not be hit: one at a time, and each looks again.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { detach } from "../daemon/detach.ts";
import { lockFile } from "../daemon/lock-file.ts";
import { type MountEntry, mountAt, mountedBy, readMountTable } from "../daemon/mount-table.ts";
import { makeRuntimeFolder } from "../daemon/runtime-folder.ts";
import { userFolders } from "./environment.ts";
import { Failure } from "./failure.ts";
import { serving } from "./find-mount.ts";
import { pollUntil } from "./poll.ts";

const LOCK_LIMIT_MS = 30_000;

/** False: it is not dead. Also true when it is gone already. */
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

/**
 * Asked by a child that can be killed: a mount whose daemon hangs would keep us waiting. The kernel tells it
 * only to the user who mounted: root asks in that name.
 */
function isDead({ mountpoint, ...mount }: MountEntry): Promise<boolean> {
  const user = mountedBy(mount);
  const asUser = process.getuid?.() === 0 && user.uid !== 0 ? user : {};
  return new Promise((answer) => {
    execFile(
      "stat",
      ["--file-system", "--", mountpoint],
      { ...asUser, timeout: 2000, killSignal: "SIGKILL", env: { LC_ALL: "C", PATH: "/usr/bin:/bin" } },
      (error, _, stderr) => {
        answer(error !== null && /not connected|connection abort/i.test(stderr));
      },
    );
  });
}
