/** Passes leases for the fast path to the device, once there is a device. It knows only numbers. */
import type { FastPath, HandleId } from "../engine/api/index.ts";

/** The calls of the device; see native.ts. */
interface LeaseDevice {
  grantRead(handle: HandleId, descriptor: number): void;
  grantWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  revokeReads(descriptor: number): void;
  revokeWrites(descriptor: number): void;
  endHandle(handle: HandleId): void;
}

export interface DeviceFastPath extends FastPath {
  /** Sets the device. Until then every request comes to us. */
  use(device: LeaseDevice): void;
}

export function createDeviceFastPath(): DeviceFastPath {
  let device: LeaseDevice | undefined;
  return {
    use(given) {
      device = given;
    },
    grantRead: (handle, descriptor) => device?.grantRead(handle, descriptor),
    grantWrite: (handle, descriptor, milliseconds) => device?.grantWrite(handle, descriptor, milliseconds),
    revokeReads: (descriptor) => device?.revokeReads(descriptor),
    revokeWrites: (descriptor) => device?.revokeWrites(descriptor),
    end: (handle) => device?.endHandle(handle),
  };
}
