/** What the kernel of this machine is and can do, as far as it, its release and the state dir's disk tell. */
import { readFileSync, statfsSync } from "node:fs";

const OVERLAYFS = 0x794c7630;

/** Of this boot of the machine. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** For passthrough: how many file systems may lie on each other below ours. An overlay counts as one itself. */
export function stackDepth(stateDir: string): 1 | 2 {
  return statfsSync(stateDir).type === OVERLAYFS ? 2 : 1;
}

/**
 * `release` as of uname(2), "6.18.0-1-amd64". Linux 6.13 and later give a change that comes after a look
 * at a file's times a time of its own; before, times are those of the last tick of the clock.
 */
export function timesAreExact(release: string): boolean {
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  return Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 13);
}
