/**
 * Unix sockets by their paths. An address has at most 107 bytes, and a longer path is cut off silently: here such a
 * path can be bound. A connection goes to the checked file itself, not to a file that takes its path a moment later.
 */
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const ADDRESS_MAX_BYTES = 107;
/** A flag of Linux that Node does not name. */
const O_PATH = 0o10000000;

interface SocketAddress {
  /** Valid for bind and connect until `close`. */
  readonly path: string;
  close(): void;
}

/**
 * An address to bind. For a longer path it goes through the folder, which stays open until `close`. Throws the system
 * error of opening the folder.
 */
export function socketAddress(path: string): SocketAddress {
  if (Buffer.byteLength(path) <= ADDRESS_MAX_BYTES) return { path, close() {} };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}

/** The file at the path is not a socket of that user. The program that listens there must not be told anything. */
export class ForeignSocket extends Error {
  override readonly name = "ForeignSocket";
}

interface OpenedSocket extends SocketAddress {
  readonly fd: number;
}

/**
 * An address to connect to: the socket itself, which only `owner` can have bound. Other users may have changed names in
 * the folder. Throws a ForeignSocket for a symbolic link and for any other file that is no socket of that user;
 * otherwise a system error.
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
