/** Where a Unix socket is reached whose path may be longer than the 107 bytes an address holds: what is longer is cut off silently. */
import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const ADDRESS_MAX_BYTES = 107;

export interface SocketAddress {
  /** To be bound or connected to until it is closed. */
  readonly path: string;
  close(): void;
}

/** A longer path goes through its folder, which is open as long. Throws what opening that throws. */
export function socketAddress(path: string): SocketAddress {
  if (Buffer.byteLength(path) <= ADDRESS_MAX_BYTES) return { path, close() {} };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}
