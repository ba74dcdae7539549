/**
 * Takes a mount off at once whoever uses it (a lazy unmount): for mounts nobody serves, and for the
 * daemon whose supervisor was killed. Done by child programs, because Node has no such call.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIMIT_MS = 10_000;

/**
 * Root takes off another user's mount in that user's name: the path may lead elsewhere by now, through folders that are the
 * user's, and must not take anything off that the user could not. Throws with one clear line when no program could do it.
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
