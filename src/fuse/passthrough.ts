/**
 * Registers local files with the kernel, which then reads, writes and maps them by itself. It knows only descriptors
 * and ids.
 */

import { backingId, type Passthrough } from "../engine/api/index.ts";
import type { Logger } from "../lib/log.ts";
import { ERRNO } from "./errno.ts";

/** The two ioctls of the addon. They return an id (> 0), 0, or -errno. */
interface BackingCalls {
  backingOpen(device: number, descriptor: number): number;
  backingClose(device: number, id: number): number;
}

export interface KernelPassthrough extends Passthrough {
  /**
   * Sets the device, on which the kernel has agreed to passthrough. Before this, and after `close`, nothing is
   * registered.
   */
  use(device: number): void;
  /** Records that there is no passthrough, with the reason. */
  doWithout(why: string): void;
  /** The reason why files are not registered. Undefined while they are. */
  readonly whyOff: string | undefined;
  close(): void;
}

/**
 * Errors that hold for all files of the state dir: the right to register is missing, or too many file systems lie below
 * them.
 */
const FOR_GOOD: ReadonlyMap<number, string> = new Map([
  [ERRNO.EPERM, "the kernel allows it to root alone (CAP_SYS_ADMIN)"],
  [ERRNO.ELOOP, "the state dir is on too many file systems that lie on each other"],
]);

export function createPassthrough(calls: BackingCalls, log: Logger, timesAreExact: boolean): KernelPassthrough {
  let device: number | undefined;
  let whyOff: string | undefined = "there is no mount";

  return {
    timesAreExact,
    get whyOff() {
      return whyOff;
    },
    doWithout(why) {
      whyOff = why;
    },
    get isOn() {
      return device !== undefined;
    },
    use(descriptor) {
      device = descriptor;
      whyOff = undefined;
    },
    close() {
      device = undefined;
    },
    register(descriptor) {
      if (device === undefined) return undefined;
      const id = calls.backingOpen(device, descriptor);
      if (id > 0) return backingId(id);
      const forGood = FOR_GOOD.get(-id);
      log.warn({ errno: -id, forGood }, "the kernel takes no local file: its bytes go through the daemon");
      if (forGood !== undefined) {
        device = undefined;
        whyOff = forGood;
      }
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
