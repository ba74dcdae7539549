/**
 * Unix sockets by their paths. A socket can be bound although its path is longer than the 107 bytes of an address (a
 * longer path is cut off silently). A connection goes to the checked file itself, not to the file at its path a moment
 * later.
 */
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const ADDRESS_MAX_BYTES = 107;
/** A flag of Linux that Node does not name. */
const O_PATH = 0o10000000;

export interface SocketAddress {
  /** Valid for bind and connect until `close`. */
  readonly path: string;
  close(): void;
}

/**
 * An address to bind. A longer path goes through its folder, which stays open as long. Throws the system's error of
 * opening the folder.
 */
export function socketAddress(path: string): SocketAddress {
  if (Buffer.byteLength(path) <= ADDRESS_MAX_BYTES) return { path, close() {} };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}

/** The file at the path is not a socket of that user: the program that listens behind it must not be told anything. */
export class ForeignSocket extends Error {
  override readonly name = "ForeignSocket";
}

export interface OpenedSocket extends SocketAddress {
  readonly fd: number;
}

/**
 * An address to connect to: the socket itself, which only `owner` can have bound. Other users may have changed names in
 * the folder. Throws a ForeignSocket for a symbolic link and for anything else that is not a socket of that user;
 * otherwise the system's error.
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
