/** The features of this machine's kernel: by its own words, by its release, and by the disk of the state dir. */
import { closeSync, openSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";

const OVERLAYFS = 0x794c7630;

/** The id of this boot of the machine. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

const CAP_SYS_ADMIN = 21n;

/**
 * True if this process may register files for passthrough. In a container with its own user namespace the kernel still
 * refuses it later.
 */
export function maySysAdmin(processStatus = readFileSync("/proc/self/status", "latin1")): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(processStatus)?.[1] ?? "0";
  return ((BigInt(`0x${effective}`) >> CAP_SYS_ADMIN) & 1n) === 1n;
}

/** Returns the reason why the kernel is not asked for passthrough. Undefined: it is asked. */
export function whyNoPassthrough(
  isWanted: boolean,
  stateDir: string,
  isOnlyWriter: (fd: number) => boolean,
): string | undefined {
  if (!isWanted) return "switched off (--no-passthrough)";
  if (!maySysAdmin()) return "only root may use it (CAP_SYS_ADMIN)";
  return knowsWriters(stateDir, isOnlyWriter) ? undefined : "the disk of the state dir does not tell who writes a file";
}

/** The number of file systems that passthrough may find stacked below ours. An overlay counts as one of them. */
export function stackDepth(stateDir: string): 1 | 2 {
  return statfsSync(stateDir).type === OVERLAYFS ? 2 : 1;
}

/** ext4, XFS, Btrfs, tmpfs: a change gets a new timestamp if the one before was read in between. */
const EXACT_TIMES: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994]);

/**
 * True if a change after a look at a file's times always gets a new time. Some disks do that since Linux 6.13;
 * otherwise times are those of the last clock tick. `release` is that of uname(2), such as "6.18.0-1-amd64".
 */
export function timesAreExact(release: string, stateDir: string): boolean {
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  const isNew = Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 13);
  return isNew && EXACT_TIMES.has(statfsSync(stateDir).type);
}

/**
 * True if the disk tells whether another program has a file open for writing. Without that, passthrough is not
 * possible.
 */
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
