/** Whether the daemon of a mount is gone for good, as the kernel says: nobody holds its device. */
import { execFile } from "node:child_process";
import { type MountEntry, mountedBy } from "../daemon/mount-table.ts";

/**
 * Asked by a child that can be killed: a mount whose daemon hangs would keep us waiting. The kernel tells it
 * only to the user who mounted: root asks in that name.
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
