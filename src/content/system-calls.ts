/**
 * The system calls that Node lacks, on file descriptors and paths. They throw, or reject with, errors like those of
 * node:fs: `code` ("ENOSPC"), `errno`, `syscall`. A descriptor must stay open until the promise settles. This file
 * knows no cache files.
 */
import { loadAddon } from "../lib/addon.ts";
import { type Time, timeFromNanoseconds } from "../lib/time.ts";

interface Addon {
  setTimes(fd: number, atime: number, atimeNs: number, mtime: number, mtimeNs: number): void;
  currentTime(): bigint;
  seek(fd: number, kind: number, offset: number): number | undefined;
  readNow(fd: number, buffer: Uint8Array, position: number): number | undefined;
  lockFile(fd: number): boolean;
  isOnlyWriter(fd: number): boolean;
  connectSocket(place: number): [fd: number, user: number];
  spreadFolders(fd: number): void;
  getxattr(path: string, name: string): Buffer;
  setxattr(path: string, name: string, value: Uint8Array, flags: number): void;
  listxattr(path: string): string[];
  removexattr(path: string, name: string): void;
  fallocate(fd: number, mode: number, offset: number, length: number): Promise<void>;
  syncDisk(fd: number): Promise<void>;
  clone(fdFrom: number, fdTo: number): Promise<void>;
  copyFileRange(fdFrom: number, fromOffset: number, fdTo: number, toOffset: number, length: number): Promise<number>;
}

const addon = loadAddon([
  "setTimes",
  "currentTime",
  "seek",
  "readNow",
  "lockFile",
  "isOnlyWriter",
  "connectSocket",
  "spreadFolders",
  "getxattr",
  "setxattr",
  "listxattr",
  "removexattr",
  "fallocate",
  "syncDisk",
  "clone",
  "copyFileRange",
]) as Addon;

const LEAVE = -1;

/** Sets access and modification time to the nanosecond. Null leaves a time as it is. */
export function setTimes(fd: number, atime: Time | null, mtime: Time | null): void {
  addon.setTimes(
    fd,
    atime?.seconds ?? 0,
    atime?.nanoseconds ?? LEAVE,
    mtime?.seconds ?? 0,
    mtime?.nanoseconds ?? LEAVE,
  );
}

/** The time that the kernel would give a file that is changed now. A call costs less than a microsecond. */
export function currentTime(): Time {
  return timeFromNanoseconds(addon.currentTime());
}

/**
 * The first position >= offset that holds data, or that is in a hole (the end of the file is one). Undefined: there is
 * none.
 */
export function seek(fd: number, kind: "data" | "hole", offset: number): number | undefined {
  return addon.seek(fd, kind === "data" ? 0 : 1, offset);
}

/**
 * Reads bytes that are in the page cache, from a position on. Returns their number, which is smaller than the buffer if
 * the file ends, or if later bytes are only on the disk. Undefined: the call would wait for the disk.
 */
export function readNow(fd: number, buffer: Uint8Array, position: number): number | undefined {
  return addon.readNow(fd, buffer, position);
}

/** Bits of fallocate(2)'s mode. */
export const KEEP_SIZE = 1;
export const PUNCH_HOLE = 2;
export const ZERO_RANGE = 16;

/** syncfs(2): makes everything on the descriptor's disk durable. */
export function syncDisk(fd: number): Promise<void> {
  return addon.syncDisk(fd);
}

/** fallocate(2); offset and length in bytes. */
export function fallocate(fd: number, mode: number, offset: number, length: number): Promise<void> {
  return addon.fallocate(fd, mode, offset, length);
}

/**
 * Replaces the second file's content by that of the first: by a reflink where the disk can, else by copying the bytes.
 * Holes stay holes. EINVAL: both are the same file.
 */
export function clone(fdFrom: number, fdTo: number): Promise<void> {
  return addon.clone(fdFrom, fdTo);
}

/**
 * Copies up to `length` bytes, inside the kernel where it can. Resolves to the number of bytes copied, which is smaller
 * at the end of the source.
 */
export function copyFileRange(
  fdFrom: number,
  fromOffset: number,
  fdTo: number,
  toOffset: number,
  length: number,
): Promise<number> {
  return addon.copyFileRange(fdFrom, fromOffset, fdTo, toOffset, length);
}

/** The value of an extended attribute; of a symbolic link itself, not of its target. ENODATA: it has no such name. */
export function getxattr(path: string, name: string): Buffer {
  return addon.getxattr(path, name);
}

/** `create`: EEXIST if the attribute exists. `replace`: ENODATA if it does not. */
export function setxattr(path: string, name: string, value: Uint8Array, mode?: "create" | "replace"): void {
  addon.setxattr(path, name, value, mode === "create" ? 1 : mode === "replace" ? 2 : 0);
}

export function listxattr(path: string): string[] {
  return addon.listxattr(path);
}

export function removexattr(path: string, name: string): void {
  addon.removexattr(path, name);
}

/**
 * Takes an exclusive flock(2) without waiting. The lock lasts until every descriptor of this open file description is
 * closed. False: another open of the file holds it.
 */
export function lockFile(fd: number): boolean {
  return addon.lockFile(fd);
}

/**
 * True if nothing else has the file open, or mapped, for writing. The descriptor must be open for writing, and the user
 * must own the file. Throws a system error where the file system has no leases.
 */
export function isOnlyWriter(fd: number): boolean {
  return addon.isOnlyWriter(fd);
}

/**
 * Connects to the Unix socket that was opened as `place` (O_PATH). Returns the connection and the user of the listening
 * process. Never waits: EAGAIN when too many connections wait already.
 */
export function connectSocket(place: number): { readonly fd: number; readonly user: number } {
  const [fd, user] = addon.connectSocket(place);
  return { fd, user };
}

/**
 * Asks the disk to put each folder made in this one into a region of its own. Throws a system error where the file
 * system has no such regions, and where the user does not own the folder.
 */
export function spreadFolders(fd: number): void {
  addon.spreadFolders(fd);
}
