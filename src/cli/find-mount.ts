/** From a folder to the daemon that serves it: the mount table says which connection, the runtime folder where it listens. */
import { join } from "node:path";
import type { MountEntry } from "../daemon/mount-table.ts";
import { readMountTable } from "../daemon/mount-table.ts";
import { isServed, type MountRecord, readRecord, socketPath } from "../daemon/runtime-folder.ts";
import { EXIT, Failure } from "./failure.ts";
import { findPlace } from "./mountpoint.ts";
import { userFolders } from "./options.ts";

export interface FoundMount {
  readonly mount: MountEntry;
  /** Absent: nobody who could be asked serves it. */
  readonly served?: { readonly record: MountRecord; readonly socket: string };
}

/** Undefined when DIR is no mount of ours. */
export function findMount(dir: string): FoundMount | undefined {
  const place = findPlace(dir, readMountTable());
  return place.is === "ourMount" ? { mount: place.mount, ...serving(place.mount) } : undefined;
}

export function requireMount(dir: string): FoundMount {
  const found = findMount(dir);
  if (found === undefined) throw new Failure(`nothing of wsfs is mounted at ${dir}`, EXIT.notMounted);
  return found;
}

/** For commands that need an answer from the daemon. */
export function requireServed(dir: string): Required<FoundMount> {
  const { mount, served } = requireMount(dir);
  if (served === undefined) {
    throw new Failure(`the mount at ${dir} is stale: its daemon is gone; "wsfs umount ${dir}" removes it`);
  }
  return { mount, served };
}

export function serving(mount: MountEntry): Pick<FoundMount, "served"> {
  for (const folder of runtimeFolders(mount)) {
    const record = readRecord(folder, mount.connection);
    // Connection numbers are used again: a record left by a killed daemon may name an older mount.
    if (record?.mountpoint !== mount.mountpoint || !isServed(record)) continue;
    return { served: { record, socket: socketPath(folder, mount.connection) } };
  }
  return {};
}

/** Ours; for root also the one of the user who mounted, which the mount's options name. */
function runtimeFolders(mount: MountEntry): string[] {
  const own = userFolders().runtime;
  const user = /(?:^|,)user_id=(\d+)/.exec(mount.superOptions)?.[1];
  if (process.getuid?.() !== 0 || user === undefined || user === "0") return [own];
  return [own, join("/run/user", user, "wsfs")];
}
