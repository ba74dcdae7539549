/**
 * Finds the daemon that serves a folder: the mount table has the number of the connection, the runtime folder has the
 * record of its daemon.
 */
import { type MountEntry, mountedBy, mountsOf, readMountTable } from "../daemon/mount-table.ts";
import { isAlive, type ProcessIdentity } from "../daemon/processes.ts";
import { type DaemonSocket, daemonSocket, listServed, type MountRecord } from "../daemon/runtime-folder.ts";
import { userFolders } from "./environment.ts";
import { EXIT, Failure } from "./failure.ts";
import { isDead } from "./is-dead.ts";
import { findPlace } from "./mountpoint.ts";
import { pollUntil } from "./poll.ts";

/** The daemon of a mount, and where it can be asked. */
export interface Served {
  readonly record: MountRecord;
  readonly socket: DaemonSocket;
  /** The runtime folder with the record. */
  readonly folder: string;
}

interface FoundMount {
  readonly mount: MountEntry;
  /** Absent: no daemon serves it, or this user cannot ask that daemon. */
  readonly served?: Served;
}

/** Undefined when DIR is not a mount of wsfs. */
export function findMount(dir: string): FoundMount | undefined {
  const place = findPlace(dir, readMountTable());
  return place.is === "ourMount" ? { mount: place.mount, ...serving(place.mount) } : undefined;
}

/** Within this time a dead daemon is replaced, or its mount is detached. */
const REPLACED_MS = 15_000;
const ENDING_MS = 1000;

/** As findMount, but waits while a daemon is being replaced. */
export async function findServed(dir: string): Promise<FoundMount | undefined> {
  let found: FoundMount | undefined;
  const isReplacementOver = () => {
    found = findMount(dir);
    return found?.served === undefined || isAlive(found.served.record.daemon);
  };
  await pollUntil(isReplacementOver, REPLACED_MS);
  return found;
}

/** Finds the daemon that took over from one that ended while it was asked. Undefined: there is none. */
export async function findSuccessor({ record }: Served, limitMs = REPLACED_MS): Promise<Served | undefined> {
  const { mountId, daemon } = record;
  const [entry] = mountsOf(readMountTable(), record.connection);
  if (mountId === undefined || entry === undefined) return undefined;
  const find = () => serving(entry).served;
  if (!(await hasEnded(daemon))) return undefined;
  await pollUntil(() => {
    const served = find();
    return served === undefined || isAlive(served.record.daemon);
  }, limitMs);
  const served = find();
  return served?.record.mountId === mountId && isAlive(served.record.daemon) ? served : undefined;
}

/** A daemon that breaks off an answer is about to end. */
export function hasEnded(daemon: ProcessIdentity): Promise<boolean> {
  return pollUntil(() => !isAlive(daemon), ENDING_MS);
}

/** The mount at DIR and its daemon, for commands that need the daemon's answer. Rejects with a Failure. */
export async function requireServed(dir: string): Promise<Required<FoundMount>> {
  const found = await findServed(dir);
  if (found === undefined) throw new Failure(`nothing of wsfs is mounted at ${dir}`, EXIT.notMounted);
  const { mount, served } = found;
  if (served === undefined) throw new Failure(`the mount at ${dir} cannot be asked: ${await whyUnserved(dir, mount)}`);
  return { mount, served };
}

/** Returns the reason why this user can ask no daemon about the mount. */
export async function whyUnserved(dir: string, mount: MountEntry): Promise<string> {
  if (await isDead(mount)) return `it is stale, its daemon is gone; "wsfs umount ${dir}" removes it`;
  return whyUnfound(mount);
}

/** Returns the reason why this user can ask no daemon about a mount that is not dead. */
export function whyUnfound(mount: MountEntry): string {
  const { uid } = mountedBy(mount);
  if (uid !== process.getuid?.()) return `user ${uid} mounted it, and only that user can ask its daemon`;
  const folders = userFolders().runtimes.join(" or ");
  return `its daemon is not found in ${folders}; give the WSFS_RUNTIME_DIR that it was mounted with`;
}

/** Finds the daemon by the number of the connection, so the mount may have been moved or copied. */
export function serving(mount: MountEntry): Pick<FoundMount, "served"> {
  const [found] = recordsFor(mount)
    .filter(({ record }) => record.connection === mount.connection && record.isOver !== true)
    // A daemon may not have noticed that its connection is over and that a new mount has its number. The later daemon
    // is the right one.
    .sort((a, b) => Number(b.record.daemon.startTime) - Number(a.record.daemon.startTime));
  return found === undefined ? {} : { served: found };
}

/** The daemon of a mount that was made at this path and is no longer there, while the daemon still runs. */
export function servedFrom(path: string): Served | undefined {
  return userFolders()
    .runtimes.flatMap((folder) => recordsIn(folder))
    .find(({ record }) => record.mountpoint === path);
}

/** `owner`: the user to whom the daemons must belong (absent: this user), because that user writes the records. */
function recordsIn(folder: string, owner?: number): Served[] {
  return listServed(folder).map((record) => ({
    record,
    folder,
    socket: daemonSocket(folder, record.daemon.pid, owner),
  }));
}

/** The records of this user. For root, also those of the user who mounted, by the mount's options. */
function recordsFor(mount: MountEntry): Served[] {
  const own = userFolders().runtimes;
  const { uid } = mountedBy(mount);
  const folders = process.getuid?.() !== 0 || uid === 0 ? own : [...own, `/run/user/${uid}/wsfs`];
  return folders.flatMap((folder) => recordsIn(folder, uid));
}
