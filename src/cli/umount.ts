/** `wsfs umount`: ends when the mount, its daemon and its supervisor are gone. */
import type { UnmountReply } from "../daemon/control-messages.ts";
import { type MountEntry, mountedBy, mountsOf, readMountTable } from "../daemon/mount-table.ts";
import { isAlive, type MountUser, type ProcessIdentity, usersOf } from "../daemon/processes.ts";
import type { MountRecord } from "../daemon/runtime-folder.ts";
import { endWaitingSupervisor } from "../daemon/supervisor-name.ts";
import { detachDead } from "./dead-mount.ts";
import { drainWithProgress, reportDrain } from "./drain.ts";
import { EXIT, Failure } from "./failure.ts";
import { findMount, findSuccessor, type Served, servedFrom, whyUnfound } from "./find-mount.ts";
import { findPlace } from "./mountpoint.ts";
import type { Values } from "./options.ts";
import { pollUntil } from "./poll.ts";
import { describeAllUnsent } from "./wording.ts";

/** The limit for the daemon's answer, which comes after the last writes of programs are done, even on a slow disk. */
const UNMOUNT_LIMIT_MS = 60_000;
const END_LIMIT_MS = 60_000;
/** The limit for the start of a successor of a daemon that died: it checks its state dir first. */
const SUCCESSOR_LIMIT_MS = 60_000;
/** A daemon that breaks off an answer ends at once. */
const GOING_LIMIT_MS = 10_000;
const USERS_SHOWN = 5;

export async function umount(values: Values<"umount">): Promise<number> {
  const { dir } = values;
  const found = findMount(dir);
  if (found === undefined) return finishUnmounted(values);
  const { mount } = found;
  if (found.served === undefined) return removeStale(dir, mount);
  const { served } = found;
  refuseCopy(dir, mount, served.record);
  if (values.drain !== undefined) {
    const seconds = values.drain === true ? undefined : values.drain;
    const result = await drainWithProgress(dir, served, { settle: true, seconds });
    if (!result.drained) {
      const exitCode = reportDrain(result);
      process.stderr.write(`wsfs: ${dir} is still mounted\n`);
      return exitCode;
    }
  }
  const { asked, reply } = await askServingDaemon(served, dir, mount);
  if (reply !== undefined && "busy" in reply) throw new Failure(describeBusy(dir, mount.mountpoint));
  await ended([asked.record.daemon, asked.record.supervisor]);
  process.stdout.write(`${dir} unmounted; ${describeUnmounted(reply)}\n`);
  return EXIT.ok;
}

/** When a daemon dies before it answers, or gives way to another one, its successor has not been asked yet. */
async function askServingDaemon(
  first: Served,
  dir: string,
  mount: MountEntry,
): Promise<{ asked: Served; reply?: UnmountReply }> {
  for (let asked = first; ; ) {
    const reply = await askToUnmount(asked);
    if (reply !== undefined) return { asked, reply };
    const next = (await findSuccessor(asked)) ?? (await waitForSuccessor(asked, dir, mount));
    if (next === undefined) return { asked };
    asked = next;
  }
}

/** Undefined when the daemon ended before it could report the unsent changes. */
async function askToUnmount({ record, socket }: Served): Promise<UnmountReply | undefined> {
  const { ControlError, postUnmount } = await import("../daemon/control-client.ts");
  try {
    return await postUnmount(socket, UNMOUNT_LIMIT_MS);
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    // Another command was faster, or the daemon was killed and its supervisor unmounts.
    const isGoing = () => !isAlive(record.daemon) || mountsOf(readMountTable(), record.connection).length === 0;
    if (!(await pollUntil(isGoing, GOING_LIMIT_MS))) throw error;
    return undefined;
  }
}

/**
 * For a daemon that had no successor after some seconds. A supervisor that keeps the mount until a release can serve it
 * is told to end. Undefined: the mount is gone, or that supervisor detaches it. Rejects with a Failure.
 */
async function waitForSuccessor(asked: Served, dir: string, mount: MountEntry): Promise<Served | undefined> {
  const { connection, supervisor } = asked.record;
  const isMounted = () => mountsOf(readMountTable(), connection).length > 0;
  if (!isMounted()) return undefined;
  // The supervisor would detach the mount while these programs use it.
  if (usersOf(mount.mountpoint).length > 0) throw new Failure(describeBusy(dir, mount.mountpoint));
  if (endWaitingSupervisor(supervisor, mountedBy(mount).uid)) return undefined;
  const next = await findSuccessor(asked, SUCCESSOR_LIMIT_MS);
  // If another command unmounts, the record of the mount may go a moment before the mount.
  if (next !== undefined || (await pollUntil(() => !isMounted(), GOING_LIMIT_MS))) return next;
  throw new Failure(`${dir} is still mounted: its daemon died, and no other one serves it yet`);
}

function describeUnmounted(reply: UnmountReply | undefined): string {
  if (reply === undefined || "busy" in reply) return "changes that its daemon had not uploaded are in its state dir";
  const { unmounted } = reply;
  const elsewhere = unmounted.elsewhere === true ? "; copies of it in other mount namespaces have ended too" : "";
  const where =
    unmounted.stateGone === true
      ? "not uploaded, in a state dir that was removed or moved away"
      : "left to upload with the next mount";
  return `${where}: ${describeAllUnsent(unmounted)}${elsewhere}`;
}

/**
 * Throws a Failure while the mount has copies (mount --bind): after the unmount either the mount would go on in a copy,
 * or the copy would be dead. The user must decide.
 */
function refuseCopy(dir: string, mount: MountEntry, record: MountRecord): void {
  const others = mountsOf(readMountTable(), mount.connection).filter(({ id }) => id !== mount.id);
  const [other] = others;
  if (other === undefined) return;
  const original = others.find(({ mountpoint }) => mountpoint === record.mountpoint);
  if (original !== undefined && mount.mountpoint !== record.mountpoint) {
    throw new Failure(
      `${dir} is a copy (mount --bind) of the mount at ${original.mountpoint}; "umount ${dir}" takes the copy off`,
    );
  }
  throw new Failure(
    `${dir} is busy: ${other.mountpoint} is a copy (mount --bind) of it; "umount ${other.mountpoint}" takes it off`,
  );
}

/** Unmounted by umount(8) or another command a moment ago. The unmount is complete when the daemon has ended. */
async function finishUnmounted({ dir, drain }: Values<"umount">): Promise<number> {
  const { path } = findPlace(dir, readMountTable());
  const served = servedFrom(path);
  if (served === undefined) throw new Failure(`nothing of wsfs is mounted at ${dir}`, EXIT.notMounted);
  const { record } = served;
  const [moved] = record.isOver === true ? [] : mountsOf(readMountTable(), record.connection);
  if (moved !== undefined) {
    throw new Failure(`nothing of wsfs is mounted at ${dir}: its mount is now at ${moved.mountpoint}`, EXIT.notMounted);
  }
  process.stderr.write(`wsfs: ${dir} was unmounted already; waiting for its daemon (process ${record.daemon.pid})\n`);
  // A copy in another mount namespace keeps the daemon alive until it is told to end.
  const reply = await askToUnmount(served);
  await ended([record.daemon, record.supervisor]);
  process.stdout.write(`${dir} unmounted; ${describeUnmounted(reply)}\n`);
  if (drain === undefined) return EXIT.ok;
  throw new Failure(`${dir} could not be drained: it was unmounted already`);
}

/** No daemon serves the mount, so it is only detached. All saved bytes are in its state dir. */
async function removeStale(dir: string, mount: MountEntry): Promise<number> {
  if (!(await detachDead(mount))) throw new Failure(`${dir} is still mounted: ${whyUnfound(mount)}`);
  process.stdout.write(
    `${dir} unmounted; its daemon was gone, changes that it had not uploaded are in its state dir\n`,
  );
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
