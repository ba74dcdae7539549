/** The mount's device, for requests and replies. Notifications may wait in the kernel, so threads of it send them. */
import type { OpenDevice } from "../fuse/device.ts";
import type { DeviceFastPath } from "../fuse/fast-path.ts";
import type { Notify } from "../fuse/kernel-cache.ts";
import { DEVICE_BUFFER_SIZE, type Device, openDevice } from "../fuse/native.ts";

interface KernelDevice {
  readonly open: OpenDevice;
  /** Works once the device is open. */
  readonly notify: Notify;
  /** Can be called once the device is open. From then on the addon answers on the fast path where it holds leases. */
  useFastPath(fastPath: DeviceFastPath): void;
  /** Resolves when the kernel has taken in all notifications. */
  delivered(): Promise<unknown>;
  /** From now on new requests wait in the kernel. */
  pause(): void;
}

const ECANCELED = 125;

export function kernelDevice(descriptor: number): KernelDevice {
  let device: Device | undefined;
  const deliveries = new Set<Promise<number>>();
  return {
    open(onRequests, onEnd) {
      const opened = openDevice(descriptor, DEVICE_BUFFER_SIZE, onRequests, onEnd);
      device = opened;
      opened.resumeReading();
      return {
        reply: (parts) => opened.reply(parts),
        answerRead: (...read) => opened.answerRead(...read),
        moved: () => opened.answered(),
        close: () => opened.close(),
      };
    },
    async notify(way, messages) {
      if (device === undefined) return ECANCELED;
      const delivery = device.notify(way, messages);
      deliveries.add(delivery);
      return delivery.finally(() => deliveries.delete(delivery));
    },
    useFastPath: (fastPath) => device !== undefined && fastPath.use(device),
    delivered: () => Promise.all(deliveries),
    pause: () => device?.pauseReading(),
  };
}
