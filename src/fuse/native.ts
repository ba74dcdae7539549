/**
 * The typed face of the addon for the kernel side: the device and the supervisor's control socket. It knows messages
 * and descriptors, only the opcodes READ, WRITE and GETXATTR, and no line of the control protocol.
 */
import { closeSync, openSync } from "node:fs";
import type { HandleId } from "../engine/api/index.ts";
import { loadAddon } from "../lib/addon.ts";

declare const handleOf: unique symbol;
type Handle<What extends string> = { readonly [handleOf]: What };

interface Addon {
  openDevice(
    fd: number,
    bufferSize: number,
    onWake: (slab: ArrayBuffer, spans: Uint32Array, count: number, large: Buffer[]) => void,
    onEnd: (errnoName: string) => void,
  ): Handle<"device">;
  deviceResume(device: Handle<"device">): void;
  devicePause(device: Handle<"device">): void;
  deviceReply(device: Handle<"device">, parts: readonly Uint8Array[]): number;
  deviceNotify(device: Handle<"device">, queue: number, message: Uint8Array): Promise<number>;
  deviceGrantRead(device: Handle<"device">, handle: HandleId, fd: number): void;
  deviceGrantWrite(device: Handle<"device">, handle: HandleId, fd: number, milliseconds: number): void;
  deviceRevokeReads(device: Handle<"device">, fd: number): void;
  deviceRevokeWrites(device: Handle<"device">, fd: number): void;
  deviceEndHandle(device: Handle<"device">, handle: HandleId): void;
  deviceAnswerRead(device: Handle<"device">, unique: number, fd: number, size: number, offset: number): boolean;
  deviceAnswered(device: Handle<"device">): [reads: number, writes: number, getxattrs: number];
  deviceClose(device: Handle<"device">): void;
  openControl(fd: number, onLine: (line: string, descriptor: number) => void, onEnd: () => void): Handle<"control">;
  controlSend(control: Handle<"control">, line: string, descriptor: number): number;
  controlClose(control: Handle<"control">): void;
  receiveDescriptor(fd: number): [line: string, descriptor: number] | undefined;
  socketPair(type: number): [number, number];
  backingOpen(deviceFd: number, fd: number): number;
  backingClose(deviceFd: number, id: number): number;
  connectionNumber(fd: number): number | undefined;
  isConnected(fd: number): boolean;
}

const addon = loadAddon([
  "openDevice",
  "deviceResume",
  "devicePause",
  "deviceReply",
  "deviceNotify",
  "deviceGrantRead",
  "deviceGrantWrite",
  "deviceRevokeReads",
  "deviceRevokeWrites",
  "deviceEndHandle",
  "deviceAnswerRead",
  "deviceAnswered",
  "deviceClose",
  "openControl",
  "controlSend",
  "controlClose",
  "receiveDescriptor",
  "socketPair",
  "backingOpen",
  "backingClose",
  "connectionNumber",
  "isConnected",
]) as Addon;

/** The size of the largest message of a connection with max_write 1 MiB. */
export const DEVICE_BUFFER_SIZE = 1024 * 1024 + 4096;

/** A span with this offset is not in the slab: it is the next of the large Buffers. */
const NOT_IN_SLAB = 0xffff_ffff;

/** Notifications about names may wait for a folder's lock, those about inodes for pages. So each kind has a thread. */
const QUEUES = { entry: 0, inode: 1 } as const;

export interface Device {
  /** The descriptor, for backingOpen and connectionNumber. */
  readonly fd: number;
  /** Starts reading. Nothing is read before the first call. The messages of one wake-up come in one call. */
  resumeReading(): void;
  /** Stops reading. Later requests wait in the kernel. */
  pauseReading(): void;
  /**
   * Writes one message out of its parts, whole or not at all. Returns 0 or an errno: ENOENT when the kernel no longer
   * waits for this answer, EBADF after close, EAGAIN only on a socket pair.
   */
  reply(parts: readonly Uint8Array[]): number;
  /**
   * Writes one or several notifications from a thread of its own, in order within the queue. Resolves to 0 or an errno
   * (ECANCELED: closed first; of several errors the first that is not ENOENT). Never rejects. It may wait for requests
   * that are not answered yet.
   */
  notify(queue: keyof typeof QUEUES, messages: Uint8Array): Promise<number>;
  /**
   * Grants a lease: from now on READs of this handle are answered from the open file, without a callback, where one
   * plain call can do that. It lasts until revokeReads or endHandle. endHandle must come before the descriptor is
   * closed.
   */
  grantRead(handle: HandleId, descriptor: number): void;
  /** Grants a lease for WRITEs, as grantRead does for READs. The lease also ends after `milliseconds`. */
  grantWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  /** Ends the leases of all handles for READs of this file. */
  revokeReads(descriptor: number): void;
  /** Ends the leases of all handles for WRITEs to this file. */
  revokeWrites(descriptor: number): void;
  endHandle(handle: HandleId): void;
  /**
   * Answers a READ from the open file if the bytes are in memory and splicing is worth it. The answer has fewer bytes
   * than `size` only at the end of the file. False: nothing was answered.
   */
  answerRead(unique: number, descriptor: number, offset: number, size: number): boolean;
  /**
   * The numbers of requests that were answered without a callback: READs and WRITEs as above, and GETXATTRs of names
   * that no file has.
   */
  answered(): { readonly READ: number; readonly WRITE: number; readonly GETXATTR: number };
  /** No callback comes after this. The descriptor is closed as soon as no notification is inside the kernel. */
  close(): void;
}

/**
 * Takes over the descriptor of /dev/fuse (or of one end of a socket pair, where a test plays the kernel). `bufferSize`
 * is the length of the longest message in bytes. `onEnd` is called once, with the errno name that ended reading: ENODEV
 * is an unmount (or the pair's other end closed), ECONNABORTED an abort. The callbacks must not throw. A message's
 * bytes belong to its receiver for ever.
 */
export function openDevice(
  fd: number,
  bufferSize: number,
  onRequests: (messages: Buffer[]) => void,
  onEnd: (errnoName: string) => void,
): Device {
  const handle = addon.openDevice(
    fd,
    bufferSize,
    (slab, spans, count, large) => onRequests(messagesOf(slab, spans, count, large)),
    onEnd,
  );
  return {
    fd,
    resumeReading: () => addon.deviceResume(handle),
    pauseReading: () => addon.devicePause(handle),
    reply: (parts) => addon.deviceReply(handle, parts),
    notify: (queue, messages) => addon.deviceNotify(handle, QUEUES[queue], messages),
    grantRead: (id, descriptor) => addon.deviceGrantRead(handle, id, descriptor),
    grantWrite: (id, descriptor, milliseconds) => addon.deviceGrantWrite(handle, id, descriptor, milliseconds),
    revokeReads: (descriptor) => addon.deviceRevokeReads(handle, descriptor),
    revokeWrites: (descriptor) => addon.deviceRevokeWrites(handle, descriptor),
    endHandle: (id) => addon.deviceEndHandle(handle, id),
    answerRead: (unique, descriptor, offset, size) => addon.deviceAnswerRead(handle, unique, descriptor, size, offset),
    answered() {
      const [READ, WRITE, GETXATTR] = addon.deviceAnswered(handle);
      return { READ, WRITE, GETXATTR };
    },
    close: () => addon.deviceClose(handle),
  };
}

function messagesOf(slab: ArrayBuffer, spans: Uint32Array, count: number, large: Buffer[]): Buffer[] {
  const messages: Buffer[] = [];
  const others = large.values();
  for (let i = 0; i < count; i++) {
    const offset = spans[2 * i] ?? 0;
    const length = spans[2 * i + 1] ?? 0;
    const other = offset === NOT_IN_SLAB ? others.next().value : undefined;
    messages.push(other ?? Buffer.from(slab, offset, length));
  }
  return messages;
}

interface Control {
  /**
   * Sends one line, with a descriptor if given. Returns 0, or an errno: EPIPE when the other end is gone. Never waits.
   */
  send(line: string, descriptor?: number): number;
  close(): void;
}

/**
 * Takes over one end of the SOCK_SEQPACKET pair between supervisor and daemon. A descriptor that comes with a line
 * belongs to the receiver. `onEnd`: the other end is closed.
 */
export function openControl(
  fd: number,
  onLine: (line: string, descriptor: number | undefined) => void,
  onEnd: () => void,
): Control {
  const handle = addon.openControl(
    fd,
    (line, descriptor) => onLine(line, descriptor < 0 ? undefined : descriptor),
    onEnd,
  );
  return {
    send: (line, descriptor) => addon.controlSend(handle, line, descriptor ?? -1),
    close: () => addon.controlClose(handle),
  };
}

/** Waits for one line and its descriptor, and blocks the thread meanwhile. Undefined when the other end is closed. */
export function receiveDescriptor(fd: number): { line: string; descriptor: number | undefined } | undefined {
  const received = addon.receiveDescriptor(fd);
  if (received === undefined) return undefined;
  const [line, descriptor] = received;
  return { line, descriptor: descriptor < 0 ? undefined : descriptor };
}

/** Two connected sockets. Messages of 1 MiB fit if the caller is root. For others net.core.wmem_max is the limit. */
export function socketPair(type: "seqpacket" | "stream"): [number, number] {
  return addon.socketPair(type === "seqpacket" ? 0 : 1);
}

/** Linux's value, for which Node has no name. */
const O_PATH = 0o10000000;

/**
 * Registers an open file for passthrough. Returns its backing id (> 0), or -errno. The kernel opens the file anew for
 * each program. It keeps the given file, even for longer than this process lives. So it is given a descriptor that can
 * only be opened (O_PATH), which does not count as a writer of the file.
 */
export function backingOpen(deviceFd: number, fd: number): number {
  const place = openSync(`/proc/self/fd/${fd}`, O_PATH);
  try {
    return addon.backingOpen(deviceFd, place);
  } finally {
    closeSync(place);
  }
}

/** Returns 0 or -errno. Opens that use the id go on. */
export function backingClose(deviceFd: number, id: number): number {
  return addon.backingClose(deviceFd, id);
}

/** The number of a mounted device's connection: the minor of the mount's st_dev. Undefined: the kernel does not say. */
export function connectionNumber(deviceFd: number): number | undefined {
  return addon.connectionNumber(deviceFd);
}

/** True if the kernel still sends requests to this device. As long as it does, no other connection has its number. */
export function isConnected(deviceFd: number): boolean {
  return addon.isConnected(deviceFd);
}
