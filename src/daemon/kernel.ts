/** What the kernel of this machine is and can do, as far as it, its release and the state dir's disk tell. */
import { closeSync, openSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";

const OVERLAYFS = 0x794c7630;

/** Of this boot of the machine. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

const CAP_SYS_ADMIN = 21n;

/** Whether this process may give files to the kernel. In a container with users of its own the kernel refuses it later. */
export function maySysAdmin(processStatus = readFileSync("/proc/self/status", "latin1")): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(processStatus)?.[1] ?? "0";
  return ((BigInt(`0x${effective}`) >> CAP_SYS_ADMIN) & 1n) === 1n;
}

/** Why the kernel is not asked for passthrough; undefined: it is. */
export function whyNoPassthrough(
  isWanted: boolean,
  stateDir: string,
  isOnlyWriter: (fd: number) => boolean,
): string | undefined {
  if (!isWanted) return "switched off (--no-passthrough)";
  if (!maySysAdmin()) return "only root may use it (CAP_SYS_ADMIN)";
  return knowsWriters(stateDir, isOnlyWriter) ? undefined : "the disk of the state dir does not tell who writes a file";
}

/** For passthrough: how many file systems may lie on each other below ours. An overlay counts as one itself. */
export function stackDepth(stateDir: string): 1 | 2 {
  return statfsSync(stateDir).type === OVERLAYFS ? 2 : 1;
}

/** ext4, XFS, Btrfs, tmpfs: those that give each change a time of its own, as far as a look came between. */
const EXACT_TIMES: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994]);

/**
 * `release` as of uname(2), "6.18.0-1-amd64". On some disks Linux 6.13 and later gives a change that comes after a
 * look at a file's times a time of its own; else times are those of the last tick of the clock.
 */
export function timesAreExact(release: string, stateDir: string): boolean {
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  const isNew = Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 13);
  return isNew && EXACT_TIMES.has(statfsSync(stateDir).type);
}

/** Whether the disk says who else has a file open for writing, without which no file can be passed on. */
export function knowsWriters(stateDir: string, isOnlyWriter: (fd: number) => boolean): boolean {
  const path = join(stateDir, "probe");
  const fd = openSync(path, "w+", 0o600);
  try {
    return isOnlyWriter(fd);
  } catch {
    return false;
  } finally {
    closeSync(fd);
    rmSync(path);
  }
}
