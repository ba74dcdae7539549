/** `wsfs umount`: ends when mount, daemon and supervisor are gone. */

import { detach } from "../daemon/detach.ts";
import { readMountTable } from "../daemon/mount-table.ts";
import { isAlive, type MountUser, type ProcessIdentity, usersOf } from "../daemon/processes.ts";
import { drainWithProgress, reportDrain } from "./drain.ts";
import { EXIT, Failure } from "./failure.ts";
import { type FoundMount, requireMount } from "./find-mount.ts";
import type { Values } from "./options.ts";
import { pollUntil } from "./poll.ts";
import { describeLeft } from "./wording.ts";

/** What programs wrote last is taken in before the answer: no disk is slower than that. */
const UNMOUNT_LIMIT_MS = 60_000;
const END_LIMIT_MS = 60_000;
const USERS_SHOWN = 5;

export async function umount(values: Values<"umount">): Promise<number> {
  const { mount, served } = requireMount(values.dir);
  if (served === undefined) return removeStale(values.dir, mount);
  if (values.drain !== undefined) {
    const seconds = values.drain === true ? undefined : values.drain;
    const result = await drainWithProgress(served.socket, { settle: true, seconds });
    if (!result.drained) {
      const exitCode = reportDrain(result);
      process.stderr.write(`wsfs: ${values.dir} is still mounted\n`);
      return exitCode;
    }
  }
  const { postUnmount } = await import("../daemon/control-client.ts");
  const reply = await postUnmount(served.socket, UNMOUNT_LIMIT_MS);
  if ("busy" in reply) throw new Failure(describeBusy(values.dir, mount.mountpoint));
  await ended([served.record.daemon, served.record.supervisor]);
  const { unmounted } = reply;
  const parked = unmounted.parked === 0 ? "" : `; ${unmounted.parked} refused by the gateway`;
  process.stdout.write(
    `${values.dir} unmounted; left to upload with the next mount: ${describeLeft(unmounted)}${parked}\n`,
  );
  return EXIT.ok;
}

/** Nobody serves it, so nothing can be asked of it; its state dir has all that was saved. */
async function removeStale(dir: string, mount: FoundMount["mount"]): Promise<number> {
  await detach(mount.mountpoint);
  process.stdout.write(`${dir} unmounted; its daemon was gone, what it had not uploaded is in its state dir\n`);
  return EXIT.ok;
}

async function ended(processes: readonly ProcessIdentity[]): Promise<void> {
  const over = await pollUntil(() => !processes.some(isAlive), END_LIMIT_MS);
  if (over) return;
  const pids = processes.filter(isAlive).map(({ pid }) => pid);
  throw new Failure(`unmounted, but process ${pids.join(" and ")} has not ended after ${END_LIMIT_MS / 1000} s`);
}

function describeBusy(dir: string, mountpoint: string): string {
  const below = readMountTable().find((entry) => entry.mountpoint.startsWith(`${mountpoint}/`));
  if (below !== undefined) return `${dir} is busy: ${below.mountpoint} is mounted (${below.type}) inside of it`;
  const users = usersOf(mountpoint);
  if (users.length === 0) return `${dir} is busy: some program uses it that this user may not see`;
  const shown = users.slice(0, USERS_SHOWN).map(describeUser).join(", ");
  const more = users.length > USERS_SHOWN ? ` and ${users.length - USERS_SHOWN} more` : "";
  return `${dir} is busy: used by ${shown}${more}`;
}

function describeUser(user: MountUser): string {
  return `${user.command} (pid ${user.pid}: ${user.use})`;
}
