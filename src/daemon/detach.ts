/**
 * Detaches a mount at once even while programs use it (a lazy unmount). For mounts that no daemon serves, and for a
 * daemon whose supervisor was killed. Child programs do it, because Node has no such call.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIMIT_MS = 10_000;

/**
 * Root detaches another user's mount as that user (`by`). The path leads through folders of that user and may lead
 * elsewhere by now, so root must not detach anything that the user could not. Throws an Error of one line when no
 * program could do it.
 */
export async function detach(mountpoint: string, by?: { readonly uid: number; readonly gid: number }): Promise<void> {
  const attempts: [string, string[]][] = [["fusermount3", ["-u", "-z", "--", mountpoint]]];
  const isRoot = process.getuid?.() === 0;
  const user = isRoot && by !== undefined && by.uid !== 0 ? by : {};
  if (isRoot && !("uid" in user)) attempts.unshift(["umount", ["-l", "-i", "--", mountpoint]]);
  const reasons: string[] = [];
  for (const [program, parameters] of attempts) {
    try {
      await run(program, parameters, { ...user, timeout: LIMIT_MS, killSignal: "SIGKILL" });
      return;
    } catch (error) {
      const { stderr, message } = error as Error & { stderr?: string };
      reasons.push((stderr?.trim() || message).split("\n", 1)[0] ?? "");
    }
  }
  throw new Error(`${mountpoint} cannot be detached: ${reasons.join("; ")}`);
}
