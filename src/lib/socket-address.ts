/**
 * Unix sockets by their paths: to be bound where the path is longer than the 107 bytes an address holds (what is longer is cut
 * off silently), and to be connected to as what they are, not as what their names lead to a moment later.
 */
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const ADDRESS_MAX_BYTES = 107;
/** Linux's, which Node does not name. */
const O_PATH = 0o10000000;

export interface SocketAddress {
  /** To be bound or connected to until it is closed. */
  readonly path: string;
  close(): void;
}

/** To be bound. A longer path goes through its folder, which is open as long. Throws what opening that throws. */
export function socketAddress(path: string): SocketAddress {
  if (Buffer.byteLength(path) <= ADDRESS_MAX_BYTES) return { path, close() {} };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}

/** What is at the path is not a socket of that user's: whoever listens behind it must not be told anything. */
export class ForeignSocket extends Error {
  override readonly name = "ForeignSocket";
}

export interface OpenedSocket extends SocketAddress {
  readonly fd: number;
}

/**
 * To be connected to: the socket itself, which only `owner` can have bound, whoever changes names in the folder. Throws a
 * ForeignSocket for a symbolic link and for anything else that is no socket of that user's, or the system's error.
 */
export function openSocket(path: string, owner: number): OpenedSocket {
  const fd = openSync(path, O_PATH | constants.O_NOFOLLOW);
  const stat = fstatSync(fd);
  if (stat.isSocket() && stat.uid === owner) {
    return { fd, path: `/proc/self/fd/${fd}`, close: () => closeSync(fd) };
  }
  closeSync(fd);
  const kind = stat.isSymbolicLink() ? "a symbolic link" : stat.isSocket() ? "a socket" : "no socket";
  throw new ForeignSocket(`${path} is ${kind} of user ${stat.uid}, expected a socket of user ${owner}`);
}
