/** The mount's device: requests come and replies go by it, and notifications, which may wait, from its threads. */
import type { OpenDevice } from "../fuse/device.ts";
import type { Notify } from "../fuse/kernel-cache.ts";
import { DEVICE_BUFFER_SIZE, type Device, openDevice } from "../fuse/native.ts";

export interface KernelDevice {
  readonly open: OpenDevice;
  /** Once it is open. */
  readonly notify: Notify;
}

const ECANCELED = 125;

export function kernelDevice(descriptor: number): KernelDevice {
  let device: Device | undefined;
  return {
    open(onRequests, onEnd) {
      const opened = openDevice(descriptor, DEVICE_BUFFER_SIZE, onRequests, onEnd);
      device = opened;
      opened.resumeReading();
      return { reply: (parts) => opened.reply(parts), close: () => opened.close() };
    },
    notify: async (way, messages) => device?.notify(way, messages) ?? ECANCELED,
  };
}
