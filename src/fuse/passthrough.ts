/**
 * The kernel's door to local files: an open file that is registered is read, written and mapped by the
 * kernel itself. It knows descriptors and ids, not whose they are.
 */
import type { Logger } from "../lib/log.ts";
import type { Passthrough } from "../vfs/passthrough.ts";
import { ERRNO } from "./errno.ts";

/** The two ioctls of the addon: an id (> 0), 0, or -errno. */
export interface BackingCalls {
  backingOpen(device: number, descriptor: number): number;
  backingClose(device: number, id: number): number;
}

export interface KernelPassthrough extends Passthrough {
  /** The kernel agreed to it on this device. Before, and after close, nothing is registered. */
  use(device: number): void;
  close(): void;
}

/**
 * Refused for all files of the state dir: the right to register is missing, or the file systems below
 * them are too many.
 */
const FOR_GOOD: ReadonlySet<number> = new Set([ERRNO.EPERM, ERRNO.ELOOP]);

export function createPassthrough(calls: BackingCalls, log: Logger, timesAreExact: boolean): KernelPassthrough {
  let device: number | undefined;

  return {
    timesAreExact,
    get isOn() {
      return device !== undefined;
    },
    use(descriptor) {
      device = descriptor;
    },
    close() {
      device = undefined;
    },
    register(descriptor) {
      if (device === undefined) return undefined;
      const id = calls.backingOpen(device, descriptor);
      if (id > 0) return id;
      const isOver = FOR_GOOD.has(-id);
      log.warn({ errno: -id, isOver }, "the kernel takes no local file: its bytes go through the daemon");
      if (isOver) device = undefined;
      return undefined;
    },
    unregister(id) {
      if (device === undefined) return;
      const result = calls.backingClose(device, id);
      // ENOENT and ENODEV: the connection has ended, and its ids with it.
      if (result !== 0) log.debug({ id, errno: -result }, "a backing file was not closed");
    },
  };
}
