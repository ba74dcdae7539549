/** Passes leases for the fast path to the device, once there is a device. It knows only numbers. */
import type { FastPath, HandleId } from "../engine/api/index.ts";

/** The calls of the device; see native.ts. */
export interface MovingDevice {
  letRead(handle: HandleId, descriptor: number): void;
  letWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  stopReading(descriptor: number): void;
  stopWriting(descriptor: number): void;
  endHandle(handle: HandleId): void;
}

export interface DeviceFastPath extends FastPath {
  /** Sets the device. Until then every request comes to us. */
  use(device: MovingDevice): void;
}

export function createDeviceFastPath(): DeviceFastPath {
  let device: MovingDevice | undefined;
  return {
    use(given) {
      device = given;
    },
    grantRead: (handle, descriptor) => device?.letRead(handle, descriptor),
    grantWrite: (handle, descriptor, milliseconds) => device?.letWrite(handle, descriptor, milliseconds),
    revokeReads: (descriptor) => device?.stopReading(descriptor),
    revokeWrites: (descriptor) => device?.stopWriting(descriptor),
    end: (handle) => device?.endHandle(handle),
  };
}
