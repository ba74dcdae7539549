/** The mount's device: requests come and replies go by it, and notifications, which may wait, from its threads. */
import type { OpenDevice } from "../fuse/device.ts";
import type { DeviceFastPath } from "../fuse/fast-path.ts";
import type { Notify } from "../fuse/kernel-cache.ts";
import { DEVICE_BUFFER_SIZE, type Device, openDevice } from "../fuse/native.ts";

export interface KernelDevice {
  readonly open: OpenDevice;
  /** Once it is open. */
  readonly notify: Notify;
  /** Once it is open: it moves bytes by itself as far as the mover lets it. */
  moveBy(mover: DeviceFastPath): void;
  /** Resolves when the kernel has taken in all it was told. */
  told(): Promise<unknown>;
  /** What comes from now on waits in the kernel. */
  pause(): void;
}

const ECANCELED = 125;

export function kernelDevice(descriptor: number): KernelDevice {
  let device: Device | undefined;
  const telling = new Set<Promise<number>>();
  return {
    open(onRequests, onEnd) {
      const opened = openDevice(descriptor, DEVICE_BUFFER_SIZE, onRequests, onEnd);
      device = opened;
      opened.resumeReading();
      return {
        reply: (parts) => opened.reply(parts),
        moved: () => opened.answered(),
        close: () => opened.close(),
      };
    },
    async notify(way, messages) {
      if (device === undefined) return ECANCELED;
      const told = device.notify(way, messages);
      telling.add(told);
      return told.finally(() => telling.delete(told));
    },
    moveBy: (fastPath) => device !== undefined && fastPath.use(device),
    told: () => Promise.all(telling),
    pause: () => device?.pauseReading(),
  };
}
