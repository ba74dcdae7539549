/** Takes off all mounts of a connection, for a daemon whose supervisor does not. */
import { isConnected } from "../fuse/native.ts";
import type { Logger } from "../lib/log.ts";
import { detach } from "./detach.ts";
import { mountsOf, readMountTable } from "./mount-table.ts";
import type { ServedMount } from "./transport.ts";

/** While the device is connected, the number of its connection is no other's. */
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
