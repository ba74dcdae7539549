/** READs and WRITEs that the device answers by itself, over a socket pair whose other end plays the kernel. */
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { handleId } from "../../src/engine/api/index.ts";
import { DEVICE_BUFFER_SIZE, type Device, openDevice, socketPair } from "../../src/fuse/native.ts";
import { patiently } from "../support/patiently.ts";

const READ = 15;
const WRITE = 16;
const GETATTR = 3;
const HANDLE = handleId(2 ** 40 + 7);
const LONG_MS = 60_000;

let folder: string;
let fd: number;
let daemon: Device;
let kernel: Device;
/** What JavaScript has to answer, by `unique`. */
let left: number[];
let replies: Map<number, { error: number; body: Buffer }>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-fast-path-"));
  writeFileSync(join(folder, "f"), "0123456789");
  fd = openSync(join(folder, "f"), "r+");
  left = [];
  replies = new Map();
  const [first, second] = socketPair("seqpacket");
  const nothing = () => {};
  daemon = openDevice(first, DEVICE_BUFFER_SIZE, (all) => left.push(...all.map(uniqueOf)), nothing);
  kernel = openDevice(
    second,
    DEVICE_BUFFER_SIZE,
    (all) => {
      for (const reply of all) {
        replies.set(uniqueOf(reply), { error: reply.readInt32LE(4), body: Buffer.from(reply.subarray(16)) });
      }
    },
    nothing,
  );
  daemon.resumeReading();
  kernel.resumeReading();
});
afterEach(() => {
  daemon.close();
  kernel.close();
  closeSync(fd);
  rmSync(folder, { recursive: true });
});

/** Without the bit that says that it comes again. */
const uniqueOf = (message: Buffer) => Number(BigInt.asUintN(63, message.readBigUInt64LE(8)));

interface Asked {
  opcode?: number;
  handle?: number;
  offset?: bigint;
  size?: number;
  data?: string;
  flags?: number;
  isResent?: boolean;
  extensions?: number;
}

let last = 0;

/** One READ, or WRITE where there is data; its `unique`. */
function ask({ data = "", opcode = data === "" ? READ : WRITE, isResent = false, ...asked }: Asked): number {
  last += 2;
  const { handle = HANDLE, offset = 0n, size = data.length || 4, flags = 0, extensions = 0 } = asked;
  const message = Buffer.alloc(80 + data.length);
  message.writeUInt32LE(message.length, 0);
  message.writeUInt32LE(opcode, 4);
  message.writeBigUInt64LE(BigInt(last) | (isResent ? 1n << 63n : 0n), 8);
  message.writeUInt16LE(extensions, 36);
  message.writeBigUInt64LE(BigInt(handle), 40);
  message.writeBigUInt64LE(offset, 48);
  message.writeUInt32LE(size, 56);
  message.writeUInt32LE(flags, 60);
  message.write(data, 80);
  expect(kernel.reply([message])).toBe(0);
  return last;
}

/** What READ was answered with, what WRITE was; undefined: it is left to JavaScript. */
async function outcome(asked: Asked): Promise<string | number | undefined> {
  const unique = ask(asked);
  await vi.waitFor(() => expect(replies.has(unique) || left.includes(unique)).toBe(true), patiently);
  const reply = replies.get(unique);
  if (reply === undefined) return undefined;
  expect(reply.error).toBe(0);
  return asked.data === undefined ? reply.body.toString() : reply.body.readUInt32LE(0);
}

const content = () => readFileSync(join(folder, "f"), "utf8");

it("reads what is let read, short at the end of the file, and leaves the rest to JavaScript", async () => {
  expect(await outcome({})).toBeUndefined();
  daemon.grantRead(HANDLE, fd);
  expect(await outcome({})).toBe("0123");
  expect(await outcome({ offset: 8n })).toBe("89");
  expect(await outcome({ offset: 800n })).toBe("");
  expect(await outcome({ data: "ab" })).toBeUndefined();
  expect(await outcome({ handle: HANDLE + 1024 })).toBeUndefined();
  daemon.revokeReads(fd + 1000);
  expect(await outcome({})).toBe("0123");
  daemon.revokeReads(fd);
  expect(await outcome({})).toBeUndefined();
  daemon.grantRead(HANDLE, fd);
  daemon.endHandle(HANDLE);
  expect(await outcome({})).toBeUndefined();
  expect(daemon.answered()).toMatchObject({ READ: 4, WRITE: 0 });
  expect(content()).toBe("0123456789");
});

it("writes what is let write, for as long as it may, to that file alone", async () => {
  daemon.grantWrite(HANDLE, fd, LONG_MS);
  daemon.grantWrite(handleId(HANDLE + 1), fd, 0);
  expect(await outcome({ data: "ab", offset: 3n })).toBe(2);
  expect(await outcome({ data: "cd", offset: 12n })).toBe(2);
  expect(content()).toBe("012ab56789\0\0cd");
  expect(await outcome({ data: "late", handle: HANDLE + 1 })).toBeUndefined();
  expect(await outcome({})).toBeUndefined();
  daemon.revokeWrites(fd + 1000);
  expect(await outcome({ data: "0" })).toBe(1);
  daemon.revokeWrites(fd);
  expect(await outcome({ data: "stopped" })).toBeUndefined();
  expect(daemon.answered()).toMatchObject({ READ: 0, WRITE: 3 });
});

it("one that comes again, is not plain, or fails is JavaScript's, and changes nothing before", async () => {
  daemon.grantRead(HANDLE, fd);
  daemon.grantWrite(HANDLE, fd, LONG_MS);
  // One nobody knows yet; CACHE, LOCKOWNER and KILL_SUIDGID are plain.
  expect(await outcome({ data: "no", flags: 8 })).toBeUndefined();
  for (const asked of [{}, { data: "no" }]) {
    expect(await outcome({ ...asked, isResent: true })).toBeUndefined();
    expect(await outcome({ ...asked, extensions: 1 })).toBeUndefined();
    for (const offset of [2n ** 63n - 1n, 2n ** 53n - 2n]) {
      expect(await outcome({ ...asked, offset })).toBeUndefined();
    }
  }
  expect(await outcome({ data: "no", size: 3 })).toBeUndefined();
  expect(await outcome({ opcode: GETATTR })).toBeUndefined();
  expect(await outcome({ size: 2 ** 31 })).toBeUndefined();
  expect(content()).toBe("0123456789");
  expect(await outcome({ data: "ye", flags: 7 })).toBe(2);
  // Less is read than there seems to be, as where the disk fails further on: zeros would be taken for the rest.
  const short = openSync("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  daemon.grantRead(HANDLE, short);
  expect(await outcome({ size: 4096 })).toBeUndefined();
  expect(await outcome({ size: 4 })).toBeTypeOf("string");
  closeSync(short);
  // A full disk, and a file that is not open for it.
  const full = openSync("/dev/full", "r+");
  daemon.grantWrite(HANDLE, full, LONG_MS);
  expect(await outcome({ data: "no" })).toBeUndefined();
  closeSync(full);
  const other = openSync(folder, "r");
  daemon.grantRead(HANDLE, other);
  expect(await outcome({})).toBeUndefined();
  closeSync(other);
});

/** These cannot say what is in memory. */
const CANNOT_TELL = [0x01021994, 0x794c7630];
const canTell = !CANNOT_TELL.includes(statfsSync(tmpdir()).type);
it.skipIf(!canTell)("much that the disk would have to bring is JavaScript's (no tmpfs, no overlayfs)", async () => {
  const path = join(folder, "large");
  writeFileSync(path, Buffer.alloc(8 * 1024 * 1024, "x"));
  const large = openSync(path, "r");
  daemon.grantRead(HANDLE, large);
  // Of a few bytes see slow-disk.test.ts.
  const size = 64 * 1024;
  const asked = { offset: 4n * 1024n * 1024n, size };
  expect(await outcome(asked)).toBe("x".repeat(size));
  // It is a wish: what the kernel is at work on it keeps for now.
  await vi.waitFor(async () => {
    execFileSync("dd", [`of=${path}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
    expect(await outcome(asked)).toBeUndefined();
  }, patiently);
  readSync(large, Buffer.alloc(size), 0, size, Number(asked.offset));
  expect(await outcome(asked)).toBe("x".repeat(size));
  closeSync(large);
});

it("handles whose numbers fall on one place take it from each other", async () => {
  daemon.grantRead(HANDLE, fd);
  daemon.grantWrite(HANDLE, fd, LONG_MS);
  daemon.grantRead(handleId(HANDLE + 1024), fd);
  expect(await outcome({})).toBeUndefined();
  expect(await outcome({ handle: HANDLE + 1024 })).toBe("0123");
  expect(await outcome({ handle: HANDLE + 1024, data: "no" })).toBeUndefined();
  daemon.endHandle(HANDLE);
  expect(await outcome({ handle: HANDLE + 1024 })).toBe("0123");
});

it("nothing is moved while reading is paused, nor after close", async () => {
  daemon.grantWrite(HANDLE, fd, LONG_MS);
  daemon.pauseReading();
  ask({ data: "paused" });
  await new Promise((resolve) => setImmediate(resolve));
  expect([content(), left]).toEqual(["0123456789", []]);
  daemon.close();
  daemon.grantWrite(HANDLE, fd, LONG_MS);
  daemon.revokeWrites(fd);
  daemon.endHandle(HANDLE);
  expect(daemon.answered()).toMatchObject({ READ: 0, WRITE: 0 });
});
