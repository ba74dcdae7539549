/** GETXATTRs that the device answers by itself, over a socket pair whose other end plays the kernel. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { DEVICE_BUFFER_SIZE, type Device, openDevice, socketPair } from "../../src/fuse/native.ts";
import { patiently } from "../support/patiently.ts";

const GETXATTR = 22;
const LISTXATTR = 23;
const EOPNOTSUPP = 95;

let daemon: Device;
let kernel: Device;
/** What came to JavaScript, and what to the kernel, by `unique`. */
let left: number[];
let replies: Map<number, { error: number; length: number }>;

beforeEach(() => {
  left = [];
  replies = new Map();
  const [first, second] = socketPair("seqpacket");
  const toJavaScript = (all: Buffer[]) => left.push(...all.map(uniqueOf));
  const toKernel = (all: Buffer[]) => {
    for (const reply of all) replies.set(uniqueOf(reply), { error: reply.readInt32LE(4), length: reply.length });
  };
  daemon = openDevice(first, DEVICE_BUFFER_SIZE, toJavaScript, () => {});
  kernel = openDevice(second, DEVICE_BUFFER_SIZE, toKernel, () => {});
  daemon.resumeReading();
  kernel.resumeReading();
});
afterEach(() => {
  daemon.close();
  kernel.close();
});

/** Without the bit that says that it comes again. */
const uniqueOf = (message: Buffer) => Number(BigInt.asUintN(63, message.readBigUInt64LE(8)));

interface Asked {
  name?: string;
  opcode?: number;
  size?: number;
  unique?: bigint;
  extensions?: number;
  length?: number;
}

let last = 0;

/** Whether JavaScript has to answer, else the answer. */
async function outcome(asked: Asked): Promise<"left" | { error: number; length: number }> {
  last += 2;
  const { name = "security.capability\0", opcode = GETXATTR, size = 0, extensions = 0 } = asked;
  const message = Buffer.concat([Buffer.alloc(48), Buffer.from(name, "latin1")]);
  message.writeUInt32LE(asked.length ?? message.length, 0);
  message.writeUInt32LE(opcode, 4);
  message.writeBigUInt64LE(BigInt(last) | (asked.unique ?? 0n), 8);
  message.writeUInt16LE(extensions, 36);
  message.writeUInt32LE(size, 40);
  expect(kernel.reply([message])).toBe(0);
  await vi.waitFor(() => expect(left.includes(last) || replies.has(last)).toBe(true), patiently);
  return left.includes(last) ? "left" : (replies.get(last) ?? "left");
}

const REFUSED = { error: -EOPNOTSUPP, length: 16 };

it.each(["security.capability\0", "security.selinux\0", "trusted.x\0", "user\0", "system.posix_acl_access\0"])(
  "refuses %j as the file system would",
  async (name) => {
    expect(await outcome({ name })).toEqual(REFUSED);
    expect(await outcome({ name, size: 1000 })).toEqual(REFUSED);
    expect(left).toEqual([]);
    expect(daemon.answered()).toEqual({ READ: 0, WRITE: 0, GETXATTR: 2 });
  },
);

it.each<[string, Asked]>([
  ["a name that may be kept", { name: "user.x\0" }],
  ["nothing but the space", { name: "user.\0" }],
  ["another opcode", { opcode: LISTXATTR }],
  ["one that comes again", { unique: 1n << 63n }],
  ["extensions", { extensions: 1 }],
  ["a length that is not so", { length: 60 }],
  ["no name", { name: "" }],
  ["an empty name", { name: "\0" }],
  ["a name without an end", { name: "security.x" }],
  ["two names", { name: "security.x\0y\0" }],
])("%s is JavaScript's", async (_, asked) => {
  expect(await outcome(asked)).toBe("left");
  expect(daemon.answered()).toEqual({ READ: 0, WRITE: 0, GETXATTR: 0 });
});
