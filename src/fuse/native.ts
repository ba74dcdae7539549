/**
 * The typed face of the addon for the kernel side: the device and the supervisor's control socket.
 * It knows messages and descriptors, of the opcodes READ, WRITE and GETXATTR alone, and no line of the control protocol.
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
  deviceLetRead(device: Handle<"device">, handle: HandleId, fd: number): void;
  deviceLetWrite(device: Handle<"device">, handle: HandleId, fd: number, milliseconds: number): void;
  deviceStopReading(device: Handle<"device">, fd: number): void;
  deviceStopWriting(device: Handle<"device">, fd: number): void;
  deviceEndHandle(device: Handle<"device">, handle: HandleId): void;
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
  "deviceLetRead",
  "deviceLetWrite",
  "deviceStopReading",
  "deviceStopWriting",
  "deviceEndHandle",
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

/** Room for the largest message of a connection with max_write 1 MiB. */
export const DEVICE_BUFFER_SIZE = 1024 * 1024 + 4096;

/** A span with this offset is not in the slab but the next of the large Buffers. */
const NOT_IN_SLAB = 0xffff_ffff;

/** Notifications about names may wait for a folder's lock, those about inodes for pages: a thread each. */
const QUEUES = { entry: 0, inode: 1 } as const;

export interface Device {
  /** The descriptor, for backingOpen and connectionNumber. */
  readonly fd: number;
  /** Starts reading: nothing is read before the first call. The messages of one wake come in one call. */
  resumeReading(): void;
  /** What comes meanwhile waits in the kernel. */
  pauseReading(): void;
  /**
   * Writes one message out of its parts, whole or not at all. 0, or an errno: ENOENT when the
   * kernel no longer waits for this answer, EBADF after close. EAGAIN only on a socket pair.
   */
  reply(parts: readonly Uint8Array[]): number;
  /**
   * Writes notifications, one or several after each other, from a thread of its own, in order within
   * its queue. Resolves to 0 or an errno (ECANCELED: closed first; of several the first that is not
   * ENOENT); never rejects. It may wait for requests not yet answered.
   */
  notify(queue: keyof typeof QUEUES, messages: Uint8Array): Promise<number>;
  /**
   * From now on READs of this handle are answered out of the open file, without a callback, wherever that can be
   * done by one plain call; until endHandle, which must come before the descriptor is closed.
   */
  letRead(handle: HandleId, descriptor: number): void;
  /** … and its WRITEs go to it, for so many milliseconds. */
  letWrite(handle: HandleId, descriptor: number, milliseconds: number): void;
  /** No READ of any handle is answered out of this file by itself any more … */
  stopReading(descriptor: number): void;
  /** … and no WRITE goes to it. */
  stopWriting(descriptor: number): void;
  endHandle(handle: HandleId): void;
  /** How many requests were answered without a callback: so, and GETXATTRs of names that no file has. */
  answered(): { readonly READ: number; readonly WRITE: number; readonly GETXATTR: number };
  /** No callback comes after it. The descriptor is closed as soon as no notification is inside the kernel. */
  close(): void;
}

/**
 * Takes over the descriptor of /dev/fuse (or of one end of a socket pair, where a test plays the
 * kernel). `bufferSize` bytes is the longest message. `onEnd` gets the errno name that ended
 * reading, once: ENODEV is an unmount (or the pair's other end closed), ECONNABORTED an abort. The
 * callbacks must not throw. A message's bytes are its receiver's for ever.
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
    letRead: (id, descriptor) => addon.deviceLetRead(handle, id, descriptor),
    letWrite: (id, descriptor, milliseconds) => addon.deviceLetWrite(handle, id, descriptor, milliseconds),
    stopReading: (descriptor) => addon.deviceStopReading(handle, descriptor),
    stopWriting: (descriptor) => addon.deviceStopWriting(handle, descriptor),
    endHandle: (id) => addon.deviceEndHandle(handle, id),
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

export interface Control {
  /** Sends one line, with a descriptor if given. 0, or an errno: EPIPE when the other end is gone. Never waits. */
  send(line: string, descriptor?: number): number;
  close(): void;
}

/**
 * Takes over one end of the SOCK_SEQPACKET pair between supervisor and daemon. A descriptor that
 * comes with a line belongs to the receiver. `onEnd`: the other end is closed.
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

/** Waits (blocking the thread) for one line and its descriptor; undefined when the other end is closed. */
export function receiveDescriptor(fd: number): { line: string; descriptor: number | undefined } | undefined {
  const received = addon.receiveDescriptor(fd);
  if (received === undefined) return undefined;
  const [line, descriptor] = received;
  return { line, descriptor: descriptor < 0 ? undefined : descriptor };
}

/** Two connected sockets. Messages of 1 MiB fit where the caller is root, else what net.core.wmem_max allows. */
export function socketPair(type: "seqpacket" | "stream"): [number, number] {
  return addon.socketPair(type === "seqpacket" ? 0 : 1);
}

/** Linux's, which Node does not name. */
const O_PATH = 0o10000000;

/**
 * Registers an open file for passthrough: its backing id (> 0), or -errno. The kernel opens the file anew for each
 * program, and keeps what it is given, for longer than this process where that dies: so it is given one that
 * can only be opened, and does not count as somebody who writes to the file.
 */
export function backingOpen(deviceFd: number, fd: number): number {
  const place = openSync(`/proc/self/fd/${fd}`, O_PATH);
  try {
    return addon.backingOpen(deviceFd, place);
  } finally {
    closeSync(place);
  }
}

/** 0 or -errno. Opens that use the id go on. */
export function backingClose(deviceFd: number, id: number): number {
  return addon.backingClose(deviceFd, id);
}

/** The number of a mounted device's connection: the minor of the mount's st_dev. Undefined: the kernel does not say. */
export function connectionNumber(deviceFd: number): number | undefined {
  return addon.connectionNumber(deviceFd);
}

/** Whether the kernel still sends requests to this device. While it does, its connection's number is no other's. */
export function isConnected(deviceFd: number): boolean {
  return addon.isConnected(deviceFd);
}
