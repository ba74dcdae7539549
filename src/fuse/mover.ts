/** Lets the device move bytes by itself, once there is one that may. It knows numbers, not whose they are. */
import type { HandleId, Mover } from "../engine/api/index.ts";

/** The device's own; see native.ts. */
export interface MovingDevice {
  letRead(handle: HandleId, descriptor: number): void;
  letWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  stopReading(descriptor: number): void;
  stopWriting(descriptor: number): void;
  endHandle(handle: HandleId): void;
}

export interface DeviceMover extends Mover {
  /** Before, everything comes to us. */
  use(device: MovingDevice): void;
}

export function createMover(): DeviceMover {
  let device: MovingDevice | undefined;
  return {
    use(given) {
      device = given;
    },
    letRead: (handle, descriptor) => device?.letRead(handle, descriptor),
    letWrite: (handle, descriptor, milliseconds) => device?.letWrite(handle, descriptor, milliseconds),
    stopReading: (descriptor) => device?.stopReading(descriptor),
    stopWriting: (descriptor) => device?.stopWriting(descriptor),
    end: (handle) => device?.endHandle(handle),
  };
}
