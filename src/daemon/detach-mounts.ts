/** Detaches all mounts of a connection, for a daemon whose supervisor cannot do it any more. */
import { readFileSync } from "node:fs";
import { isConnected } from "../fuse/native.ts";
import type { Logger } from "../lib/log.ts";
import { detach } from "./detach.ts";
import { isOurs, mountAt, mountsOf, readMountTable } from "./mount-table.ts";
import type { ServedMount } from "./transport.ts";

/**
 * Failures are only logged. The table is read before the check: as long as the device is connected, no other mount can
 * have the number of its connection.
 */
export async function detachMounts({ connection, descriptor }: ServedMount, log: Logger): Promise<void> {
  const mounts = mountsOf(readMountTable(), connection);
  if (!isConnected(descriptor)) return;
  for (const { mountpoint } of mounts.toReversed()) {
    try {
      await detach(mountpoint);
    } catch (error) {
      log.error({ err: error }, "the mount could not be detached");
    }
  }
}

/** Detaches the mount of this device at the folder. Another mount that is there by now stays. */
export async function detachDevice(descriptor: number, mountpoint: string, log: Logger): Promise<void> {
  const connection = connectionOf(descriptor) ?? connectionAt(mountpoint);
  if (connection !== undefined) await detachMounts({ connection, descriptor }, log);
}

/** Undefined where the kernel does not tell (older kernels). */
function connectionOf(descriptor: number): number | undefined {
  const found = /^fuse_connection:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8"));
  return found === null ? undefined : Number(found[1]);
}

function connectionAt(mountpoint: string): number | undefined {
  const mount = mountAt(readMountTable(), mountpoint);
  return isOurs(mount) ? mount.connection : undefined;
}
