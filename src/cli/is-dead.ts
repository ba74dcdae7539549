/** Finds out whether the daemon of a mount is gone for good. The kernel knows: no process has the device open. */
import { execFile } from "node:child_process";
import { type MountEntry, mountedBy } from "../daemon/mount-table.ts";

/**
 * A child process asks the kernel, because a hanging mount would block this process and a child can be killed. The
 * kernel answers only the user who mounted, so root asks as that user.
 */
export function isDead({ mountpoint, ...mount }: MountEntry): Promise<boolean> {
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
