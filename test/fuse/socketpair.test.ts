/**
 * The whole device loop, addon included: the session serves one end of a socketpair, and the test
 * plays the kernel at the other end with bytes written by hand.
 */
import { afterEach, describe, expect, it } from "vitest";
import { DEVICE_BUFFER_SIZE, type Device, openDevice, socketPair } from "../../src/fuse/native.ts";
import { createSession, type Session } from "../../src/fuse/session.ts";
import { SILENT } from "../../src/lib/log.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { bytesOf, initBody, type Part, requestBytes } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

const OP = { LOOKUP: 1, GETATTR: 3, MKDIR: 9, WRITE: 16, READ: 15, INIT: 26, CREATE: 35, READDIR: 28, OPENDIR: 27 };
const ENOENT = 2;
const O_RDWR = 2;
const HEADER = 16;

interface Answer {
  readonly error: number;
  readonly body: Buffer;
}

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

function start(): {
  session: Session;
  call(opcode: number, nodeid: number, ...body: Part[]): Promise<Answer>;
  sendRaw(message: Uint8Array): number;
  hangUp(): void;
} {
  const [kernelEnd, daemonEnd] = socketPair("seqpacket");
  const waiting = new Map<bigint, (answer: Answer) => void>();
  const kernel: Device = openDevice(
    kernelEnd,
    DEVICE_BUFFER_SIZE,
    (messages) => {
      for (const message of messages) {
        const bytes = Buffer.from(message);
        expect(bytes.readUInt32LE(0)).toBe(bytes.length);
        const answer = { error: bytes.readInt32LE(4), body: bytes.subarray(HEADER) };
        waiting.get(bytes.readBigUInt64LE(8))?.(answer);
      }
    },
    () => {},
  );
  kernel.resumeReading();
  const session = createSession({
    device(onRequests, onEnd) {
      const device = openDevice(daemonEnd, DEVICE_BUFFER_SIZE, onRequests, onEnd);
      device.resumeReading();
      return { reply: (parts) => device.reply(parts), close: () => device.close() };
    },
    fileSystem: createMemoryFileSystem(),
    log: SILENT,
    clock: systemClock,
  });
  let hungUp = false;
  const hangUp = () => {
    if (!hungUp) kernel.close();
    hungUp = true;
  };
  cleanUps.push(() => session.close(), hangUp);
  let next = 0n;
  return {
    session,
    hangUp,
    sendRaw: (message) => kernel.reply([message]),
    call(opcode, nodeid, ...body) {
      next += 2n;
      const id = next;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        expect(kernel.reply([requestBytes({ opcode, id, nodeid }, ...body)])).toBe(0);
      });
    },
  };
}

async function startInitialized() {
  const kernel = start();
  const init = await kernel.call(OP.INIT, 0, ...initBody());
  expect(init.error).toBe(0);
  expect(init.body.readUInt32LE(0)).toBe(7);
  await kernel.session.initialized;
  return kernel;
}

const createBody = (name: string): Part[] => [O_RDWR, 0o100644, 0, 0, name];

describe("the device loop over a socketpair", () => {
  it("agrees on INIT, makes a file, writes and reads it", async () => {
    const kernel = await startInitialized();
    const created = await kernel.call(OP.CREATE, 1, ...createBody("file"));
    expect(created).toMatchObject({ error: 0 });
    expect(created.body).toHaveLength(144);
    const nodeid = Number(created.body.readBigUInt64LE(0));
    const fh = created.body.readBigUInt64LE(128);
    const text = Buffer.from("over the wire");
    const written = await kernel.call(OP.WRITE, nodeid, fh, 0n, text.length, 0, 0n, O_RDWR, 0, text);
    expect(written.body.readUInt32LE(0)).toBe(text.length);
    const read = await kernel.call(OP.READ, nodeid, fh, 0n, 4096, 0, 0n, O_RDWR, 0);
    expect(read.body.toString()).toBe("over the wire");
  });

  it("carries a large write in one message", async () => {
    const kernel = await startInitialized();
    const created = await kernel.call(OP.CREATE, 1, ...createBody("big"));
    const nodeid = Number(created.body.readBigUInt64LE(0));
    const fh = created.body.readBigUInt64LE(128);
    // 128 KiB: an ordinary user's socket buffers hold no more.
    const data = Buffer.alloc(128 * 1024, "x");
    const written = await kernel.call(OP.WRITE, nodeid, fh, 0n, data.length, 0, 0n, O_RDWR, 0, data);
    expect(written.body.readUInt32LE(0)).toBe(data.length);
  });

  it("answers hundreds of requests that lie in the socket at once, each its own", async () => {
    const kernel = await startInitialized();
    const names = Array.from({ length: 300 }, (_, index) => `folder-${index}`);
    const made = await Promise.all(names.map((name) => kernel.call(OP.MKDIR, 1, 0o755, 0, name)));
    expect(made.every((answer) => answer.error === 0)).toBe(true);
    const found = await Promise.all(names.map((name) => kernel.call(OP.LOOKUP, 1, name)));
    expect(found.map((answer) => answer.body.readBigUInt64LE(0))).toEqual(
      made.map((answer) => answer.body.readBigUInt64LE(0)),
    );
    expect((await kernel.call(OP.LOOKUP, 1, "nowhere")).error).toBe(-ENOENT);
  });

  it("lives through malformed messages and goes on answering", async () => {
    const kernel = await startInitialized();
    const malformed = [
      Buffer.from([1]),
      Buffer.alloc(39),
      Buffer.alloc(40),
      requestBytes({ opcode: OP.GETATTR, id: 1_000_000n, length: 4096 }, 0, 0, 0n),
      requestBytes({ opcode: OP.LOOKUP, id: 1_000_002n }, Buffer.from("no-nul")),
      requestBytes({ opcode: OP.LOOKUP, id: 1_000_004n }, "a/b"),
      requestBytes({ opcode: OP.LOOKUP, id: 1_000_006n }, Buffer.from([0xff, 0xfe, 0])),
      requestBytes({ opcode: 4095, id: 1_000_008n }, bytesOf(1, 2, 3)),
      requestBytes({ opcode: OP.WRITE, id: 1_000_010n }, 0n, 0n, 1_000_000),
    ];
    for (const message of malformed) expect(kernel.sendRaw(message)).toBe(0);
    const answer = await kernel.call(OP.GETATTR, 1, 0, 0, 0n);
    expect(answer.error).toBe(0);
    expect(answer.body).toHaveLength(104);
  });

  it("ends when the kernel hangs up", async () => {
    const kernel = await startInitialized();
    kernel.hangUp();
    expect(await kernel.session.ended).toBe("ENODEV");
  });
});
