/**
 * An ordinary user for tests that run as root: programs run as it, in a mount namespace of their own in
 * which /dev/fuse is open to all, as it is on desktops and servers but not in every container. What is mounted
 * there shows there alone, and is gone with the namespace's last process.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type MountEntry, parseMountTable } from "../../src/daemon/mount-table.ts";

/** Every Linux knows it by name, which fusermount3 asks for. */
export const NOBODY = 65534;

export interface OrdinaryUser {
  readonly uid: number;
  /** The command line that runs this one as the user, with `folder` as its current folder. */
  command(folder: string, program: string, args: readonly string[]): [string, string[]];
  /** The same as root, in the user's namespace. */
  asRoot(folder: string, program: string, args: readonly string[]): [string, string[]];
  mountTable(): MountEntry[];
  own(path: string): void;
  end(): Promise<void>;
}

/** Why there can be none here; undefined: there can. */
export function whyNoOrdinaryUser(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root, to become another user";
  if (!existsSync("/dev/fuse")) return "needs /dev/fuse";
  const folders = (process.env.PATH ?? "").split(":");
  return folders.some((folder) => existsSync(join(folder, "fusermount3"))) ? undefined : "needs fusermount3";
}

/** `fuseConf`: what stands in /etc/fuse.conf there. */
export async function becomeOrdinaryUser(fuseConf: string): Promise<OrdinaryUser> {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-namespace-"));
  const script = [
    'mknod -m 666 "$0/fuse" c 10 229 && mount --bind "$0/fuse" /dev/fuse',
    '(umask 022 && printf %s "$1" > "$0/fuse.conf" && touch -a /etc/fuse.conf) && mount --bind "$0/fuse.conf" /etc/fuse.conf',
    "echo open && read line",
  ].join(" && ");
  const holder = spawn("unshare", ["-m", "--propagation", "private", "bash", "-c", script, folder, fuseConf], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [said] = await once(holder.stdout, "data");
  if (String(said) !== "open\n") throw new Error(`no mount namespace could be made: ${said}`);
  const enter = (who: readonly string[], at: string, program: string, args: readonly string[]): [string, string[]] => {
    // The folder is changed inside: from outside it would be the one below the mounts.
    const there = ["bash", "-c", 'cd "$0" && exec "$@"', at, program, ...args];
    return ["nsenter", ["-m", "-t", String(holder.pid), ...who, "--", ...there]];
  };
  return {
    uid: NOBODY,
    command: (at, program, args) => enter(["-S", String(NOBODY), "-G", String(NOBODY)], at, program, args),
    asRoot: (at, program, args) => enter([], at, program, args),
    mountTable: () => parseMountTable(readFileSync(`/proc/${holder.pid}/mountinfo`, "utf8")),
    own: (path) => chownSync(path, NOBODY, NOBODY),
    async end() {
      const ended = once(holder, "exit");
      holder.stdin.end("\n");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
