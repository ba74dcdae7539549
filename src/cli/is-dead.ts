/** Whether the daemon of a mount is gone for good, as the kernel tells: no process has the device open. */
import { execFile } from "node:child_process";
import { type MountEntry, mountedBy } from "../daemon/mount-table.ts";

/**
 * A child asks that can be killed, because a mount whose daemon hangs would block us. The kernel answers only the user
 * who mounted, so root asks as that user.
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
