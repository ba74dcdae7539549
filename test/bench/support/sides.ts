/**
 * The two places a workload runs in: a plain folder, and a mount whose state lies on the same disk.
 * Each can be brought to rest, so that what one round leaves behind does not slow the next one.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../support/child.ts";
import { check, type Place, type TestGateway, type TestMount } from "../../support/wsfs.ts";

export interface Side {
  readonly kind: "plain" | "mount";
  /** Where its files are. To be touched by child processes only. */
  readonly folder: string;
  /** Resolves when nothing is under way behind it: all uploaded, all on the disk. */
  finishWork(): Promise<void>;
  /** Since it began; of a plain folder undefined. */
  work(): Promise<DaemonWork | undefined>;
  /** Removes all of its files, where that is quicker than by name in `folder`. */
  empty?(): Promise<void>;
}

/** What a mount's daemon had to do. */
export interface DaemonWork {
  /** Requests of the kernel, by operation. */
  readonly requests: Readonly<Record<string, number>>;
  /** Seconds of processor time, all its threads. */
  readonly processor: number;
}

/** A side that can be made to know nothing of its files, as after a start of the machine. */
export interface ColdSide extends Side {
  forget(): Promise<void>;
}

const DRAIN_LIMIT_MS = 600_000;

export async function plainSide(place: Place, name: string): Promise<ColdSide> {
  const folder = place.path(name);
  check(await place.sh(`mkdir -p '${folder}'`));
  return {
    kind: "plain",
    folder,
    finishWork: () => syncDisk(place, folder),
    work: async () => undefined,
    forget: () => dropCaches(place),
  };
}

export async function mountSide(
  place: Place,
  gateway: TestGateway,
  name: string,
  args: readonly string[] = [],
): Promise<Side> {
  return sideOf(place, await place.mount(gateway, { name, args }));
}

/** `forget` mounts anew, with an empty state dir. */
export function coldMountSide(
  place: Place,
  gateway: TestGateway,
  name: string,
  args: readonly string[] = [],
): ColdSide {
  let number = 0;
  let mount: TestMount | undefined;
  let side: Side | undefined;
  const current = (): Side => {
    if (side === undefined) throw new Error("a cold mount is there only after forget()");
    return side;
  };
  return {
    kind: "mount",
    get folder() {
      return current().folder;
    },
    finishWork: async () => side?.finishWork(),
    work: () => current().work(),
    async forget() {
      await mount?.umount();
      number += 1;
      mount = await place.mount(gateway, { name: `${name}-${number}`, args });
      side = sideOf(place, mount);
      await dropCaches(place);
    },
  };
}

function sideOf(place: Place, mount: TestMount): Side {
  return {
    kind: "mount",
    folder: mount.dir,
    async finishWork() {
      check(await place.wsfs(["drain", mount.dir, "--no-settle"], { timeoutMs: DRAIN_LIMIT_MS }));
      await syncDisk(place, mount.stateDir);
    },
    async work() {
      const { operations } = await mount.status();
      return { requests: operations as Record<string, number>, processor: processorSeconds(mount.pid) };
    },
  };
}

const TICKS_A_SECOND = 100;

function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system] = [Number(fields[11]), Number(fields[12])];
  return (user + system) / TICKS_A_SECOND;
}

async function syncDisk(place: Place, folder: string): Promise<void> {
  check(await place.sh(`sync -f '${folder}'`));
}

/** Page cache, names and inodes of the whole machine. By us: root alone may. */
export async function dropCaches(place: Place): Promise<void> {
  check(await run("bash", ["-c", `sync -f '${place.folder}' && echo 3 > /proc/sys/vm/drop_caches`]));
}

/** All of a side's files, so that the next workload finds it empty. */
export async function empty(place: Place, side: Side): Promise<void> {
  if (side.empty !== undefined) return side.empty();
  check(await place.sh(`find '${side.folder}' -mindepth 1 -delete`, { timeoutMs: DRAIN_LIMIT_MS }));
  await side.finishWork();
}

/** A fresh folder below the side's own. */
export async function makeFolder(place: Place, side: Side, name: string): Promise<string> {
  const folder = join(side.folder, name);
  check(await place.sh(`mkdir '${folder}'`));
  return folder;
}
