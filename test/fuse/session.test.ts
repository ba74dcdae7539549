/** The device loop: exactly one answer a request, deadlines, INTERRUPT, what is logged and counted. */
import { describe, expect, it } from "vitest";
import {
  type Caller,
  type FileSystem,
  type Found,
  FsError,
  handleId,
  type Opened,
} from "../../src/engine/api/index.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { bytesOf, CALLER, gate, initBody, requestBytes, settled, startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

const OP = { LOOKUP: 1, GETATTR: 3, OPEN: 14, WRITE: 16, FSYNC: 20, INIT: 26, CREATE: 35, INTERRUPT: 36, READ: 15 };
const ERRNO = { ENOENT: 2, EINTR: 4, EIO: 5, EINVAL: 22, ENOSYS: 38, EPROTO: 71, ENOSPC: 28 };
const GETATTR_BODY = [0, 0, 0n];

function withOperations(operations: Partial<FileSystem>) {
  const memory = createMemoryFileSystem();
  return { memory, fileSystem: { ...memory, ...operations } };
}

async function foundRoot(memory: FileSystem, caller: Caller): Promise<Found> {
  return { ...(await memory.getattr(caller, kernelNodeId(1))), kernelNodeId: kernelNodeId(77), entryValidMs: 0 };
}

describe("a request", () => {
  it("is answered once, with its own unique", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    const reply = await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY);
    await settled();
    expect(reply.error).toBe(0);
    expect(kernel.replies).toHaveLength(1);
  });

  it("that was resent gets its whole unique back, bit 63 included", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: 2n ** 63n + 900n }, ...GETATTR_BODY));
    expect(await kernel.replyTo(900)).toMatchObject({ resent: true, error: 0 });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: 902n }, ...GETATTR_BODY));
    expect(await kernel.replyTo(902)).toMatchObject({ resent: false, error: 0 });
  });

  it("that comes again while it is at hand is dropped", async () => {
    const held = gate();
    const { fileSystem, memory } = withOperations({
      getattr: async (caller, kernelNodeId) => {
        await held.promise;
        return memory.getattr(caller, kernelNodeId);
      },
    });
    const kernel = startFakeKernel({ fileSystem });
    const message = requestBytes({ opcode: OP.GETATTR, id: 40n }, ...GETATTR_BODY);
    const resent = requestBytes({ opcode: OP.GETATTR, id: 2n ** 63n + 40n }, ...GETATTR_BODY);
    kernel.sendRaw(message, resent);
    held.open();
    await settled();
    expect(kernel.replies).toHaveLength(1);
  });

  it("tells the file system who asks", async () => {
    let seen: object | undefined;
    const { fileSystem, memory } = withOperations({
      getattr: (caller, kernelNodeId) => {
        seen = { uid: caller.uid, gid: caller.gid, pid: caller.pid };
        return memory.getattr(caller, kernelNodeId);
      },
    });
    await startFakeKernel({ fileSystem }).call(OP.GETATTR, 1, ...GETATTR_BODY);
    expect(seen).toEqual(CALLER);
  });

  it("before INIT is answered EIO", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem(), init: false });
    expect((await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY)).error).toBe(-ERRNO.EIO);
  });

  it("needs no INIT when the connection was taken over", async () => {
    const first = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    const connection = await first.session.initialized;
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem(), init: false, connection });
    expect((await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY)).error).toBe(0);
  });

  it("of an unknown opcode is answered ENOSYS and counted", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    expect((await kernel.call(4711, 1)).error).toBe(-ERRNO.ENOSYS);
    expect(kernel.session.operations()).toEqual({ INIT: 1, UNKNOWN: 1 });
  });
});

describe("a handler that fails", () => {
  it("with an FsError gives its errno and a header only", async () => {
    const { fileSystem } = withOperations({ getattr: () => Promise.reject(new FsError("ENOSPC", "full")) });
    const reply = await startFakeKernel({ fileSystem }).call(OP.GETATTR, 1, ...GETATTR_BODY);
    expect(reply).toMatchObject({ error: -ERRNO.ENOSPC, body: Buffer.alloc(0) });
  });

  it.each([
    ["rejecting", () => Promise.reject(new Error("outer", { cause: new TypeError("inner") }))],
    [
      "throwing at once",
      () => {
        throw new Error("outer", { cause: new TypeError("inner") });
      },
    ],
  ])("by a bug (%s) gives EIO, logged with its causes; the loop goes on", async (_, getattr) => {
    const { fileSystem } = withOperations({ getattr });
    const kernel = startFakeKernel({ fileSystem, level: "error" });
    expect((await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY)).error).toBe(-ERRNO.EIO);
    expect(kernel.lines).toHaveLength(1);
    expect(kernel.lines[0]?.fields).toMatchObject({
      op: "GETATTR",
      error: "Error: outer, caused by TypeError: inner",
    });
    expect((await kernel.call(OP.LOOKUP, 1, "x")).error).toBe(-ERRNO.ENOENT);
  });

  it("with EIO is told at warn with its cause, but not a thousand times", async () => {
    const { fileSystem } = withOperations({
      getattr: () => Promise.reject(new FsError("EIO", "gateway", { cause: new Error("ECONNREFUSED") })),
    });
    const kernel = startFakeKernel({ fileSystem, level: "warn" });
    for (let index = 0; index < 50; index += 1) await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY);
    expect(kernel.lines).toHaveLength(1);
    expect(kernel.lines[0]?.fields.error).toContain("caused by Error: ECONNREFUSED");
    kernel.clock.advance(1001);
    await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY);
    expect(kernel.lines).toHaveLength(2);
  });

  it("by answering more bytes than were asked for gives EIO", async () => {
    const { fileSystem } = withOperations({ read: async () => new Uint8Array(11) });
    const kernel = startFakeKernel({ fileSystem, level: "error" });
    expect((await kernel.call(OP.READ, 1, 1n, 0n, 10, 0, 0n, 0, 0)).error).toBe(-ERRNO.EIO);
    expect(kernel.lines[0]?.fields.error).toContain("read of 10 bytes answered 11");
  });
});

describe("a deadline", () => {
  it("answers EIO although the handler never returns, and tells it to stop", async () => {
    let signal: AbortSignal | undefined;
    const { fileSystem } = withOperations({
      getattr: (caller) => {
        signal = caller.signal;
        return new Promise(() => {});
      },
    });
    const kernel = startFakeKernel({ fileSystem, level: "warn" });
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.clock.advance(59_999);
    expect(kernel.replies).toEqual([]);
    kernel.clock.advance(1);
    expect((await kernel.replyTo(id)).error).toBe(-ERRNO.EIO);
    expect(signal?.aborted).toBe(true);
    expect(kernel.session.inFlight()).toEqual([]);
    expect(kernel.lines[0]).toMatchObject({ level: "warn", fields: { op: "GETATTR", result: "EIO" } });
  });

  it("is each request's own", async () => {
    const { fileSystem } = withOperations({ getattr: () => new Promise(() => {}) });
    const kernel = startFakeKernel({ fileSystem, deadlineMs: 100 });
    kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.clock.advance(60);
    const second = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.clock.advance(60);
    expect(kernel.session.inFlight()).toEqual([
      { operation: "GETATTR", id: second, node: 1, uid: CALLER.uid, pid: CALLER.pid, milliseconds: 60 },
    ]);
    kernel.clock.advance(40);
    expect(kernel.replies.map(({ error }) => error)).toEqual([-ERRNO.EIO, -ERRNO.EIO]);
  });

  it("is not for what waits for the local disk, also when another request's passes", async () => {
    const held = gate();
    const { fileSystem } = withOperations({
      write: () => held.promise.then(() => 1),
      fsync: () => held.promise,
      getattr: () => new Promise(() => {}),
    });
    const kernel = startFakeKernel({ fileSystem });
    kernel.send(OP.WRITE, 1, 1n, 0n, 1, 0, 0n, 0, 0, new Uint8Array([1]));
    kernel.send(OP.FSYNC, 1, 1n, 0, 0);
    const asked = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.clock.advance(3_600_000);
    expect(kernel.replies).toMatchObject([{ id: asked, error: -ERRNO.EIO }]);
    held.open();
    await kernel.session.drained();
    expect(kernel.replies.map(({ error }) => error)).toEqual([-ERRNO.EIO, 0, 0]);
  });

  it("makes a late result be dropped, and what it gave be taken back", async () => {
    const looked = gate<Found>();
    const opened = gate<Opened>();
    const forgotten: unknown[] = [];
    const released: number[] = [];
    const { fileSystem, memory } = withOperations({
      lookup: () => looked.promise,
      open: () => opened.promise,
      forget: (list) => void forgotten.push(...list),
      release: async (handle) => void released.push(handle),
    });
    const kernel = startFakeKernel({ fileSystem });
    kernel.send(OP.LOOKUP, 1, "x");
    kernel.send(OP.OPEN, 5, 0, 0);
    kernel.clock.advance(60_000);
    looked.open(await foundRoot(memory, {} as Caller));
    opened.open({ handle: handleId(9), keepCache: false });
    await settled();
    expect(kernel.replies.map(({ error }) => error)).toEqual([-ERRNO.EIO, -ERRNO.EIO]);
    expect(forgotten).toEqual([{ kernelNodeId: 77, count: 1 }]);
    expect(released).toEqual([9]);
    expect(kernel.lines.filter(({ message }) => message === "late result dropped")).toHaveLength(2);
  });
});

describe("INTERRUPT", () => {
  it("of a handler that stops answers the original with EINTR, and nothing for itself", async () => {
    const { fileSystem } = withOperations({
      getattr: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
    });
    const kernel = startFakeKernel({ fileSystem });
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.sendRaw(requestBytes({ opcode: OP.INTERRUPT, id: BigInt(id + 1), nodeid: 0 }, BigInt(id)));
    expect(await kernel.replyTo(id)).toMatchObject({ error: -ERRNO.EINTR });
    expect(kernel.replies).toHaveLength(1);
  });

  it("is seen by a handler that looks at its signal only later", async () => {
    const held = gate();
    const { fileSystem } = withOperations({
      getattr: async (caller) => {
        await held.promise;
        caller.signal.throwIfAborted();
        throw new Error("not reached");
      },
    });
    const kernel = startFakeKernel({ fileSystem });
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.send(OP.INTERRUPT, 0, BigInt(id));
    held.open();
    expect((await kernel.replyTo(id)).error).toBe(-ERRNO.EINTR);
  });

  it("of a handler that goes on leaves its answer as it is", async () => {
    const held = gate();
    const { fileSystem, memory } = withOperations({
      getattr: async (caller, kernelNodeId) => {
        expect(caller.signal.aborted).toBe(false);
        await held.promise;
        return memory.getattr(caller, kernelNodeId);
      },
    });
    const kernel = startFakeKernel({ fileSystem });
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.send(OP.INTERRUPT, 0, BigInt(id));
    held.open();
    expect((await kernel.replyTo(id)).error).toBe(0);
  });

  it("does not turn another failure into EINTR", async () => {
    const held = gate();
    const { fileSystem } = withOperations({
      getattr: () => held.promise.then(() => Promise.reject(new FsError("ENOSPC", "x"))),
    });
    const kernel = startFakeKernel({ fileSystem });
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.send(OP.INTERRUPT, 0, BigInt(id));
    held.open();
    expect((await kernel.replyTo(id)).error).toBe(-ERRNO.ENOSPC);
  });

  it("by what ends nobody leaves a request alone, until something does", async () => {
    const { fileSystem } = withOperations({
      getattr: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
    });
    const asked: number[] = [];
    const kernel = startFakeKernel({ fileSystem, hasFatalSignal: (thread) => asked.push(thread) > 2 });
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.send(OP.INTERRUPT, 0, BigInt(id));
    kernel.clock.advance(100);
    await settled();
    expect(kernel.replies).toEqual([]);
    kernel.clock.advance(100);
    expect((await kernel.replyTo(id)).error).toBe(-ERRNO.EINTR);
    kernel.clock.advance(1000);
    expect(asked).toEqual([CALLER.pid, CALLER.pid, CALLER.pid]);
  });

  it("of an unknown request is answered by nothing", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    kernel.send(OP.INTERRUPT, 0, 12345678n);
    await settled();
    expect(kernel.replies).toEqual([]);
  });

  it("of a resent request is found by the number it had", async () => {
    const { fileSystem } = withOperations({
      getattr: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const kernel = startFakeKernel({ fileSystem });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: 2n ** 63n + 60n }, ...GETATTR_BODY));
    kernel.sendRaw(requestBytes({ opcode: OP.INTERRUPT, id: 2n ** 63n + 61n, nodeid: 0 }, 2n ** 63n + 60n));
    expect((await kernel.replyTo(60)).error).toBe(-ERRNO.EINTR);
  });
});

describe("a reply the kernel does not take", () => {
  it("for ENOENT is forgotten, and what it gave taken back", async () => {
    const memory = createMemoryFileSystem();
    const kernel = startFakeKernel({ fileSystem: memory, level: "warn" });
    kernel.errnos.push(ERRNO.ENOENT);
    kernel.send(OP.CREATE, 1, 2, 0o100644, 0, 0, "file");
    await kernel.session.drained();
    expect(kernel.replies).toHaveLength(1);
    expect(kernel.lines).toEqual([]);
    expect(memory.counts.size).toBe(0);
    expect(memory.handles.size).toBe(0);
  });

  it("for EINVAL is a bug: logged, and EIO sent once", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem(), level: "error" });
    kernel.errnos.push(ERRNO.EINVAL, ERRNO.EINVAL);
    const id = kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    await kernel.session.drained();
    expect(kernel.replies.map(({ error, body }) => [error, body.length])).toEqual([
      [0, 104],
      [-ERRNO.EIO, 0],
    ]);
    expect(kernel.lines).toHaveLength(1);
    expect(kernel.lines[0]?.fields).toMatchObject({ id });
  });
});

describe("the end", () => {
  it("is told with its reason, cancels what is in flight, and sends nothing more", async () => {
    const { fileSystem } = withOperations({
      getattr: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const kernel = startFakeKernel({ fileSystem });
    kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.end("ENODEV");
    expect(await kernel.session.ended).toBe("ENODEV");
    await kernel.session.drained();
    kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    await settled();
    expect(kernel.replies).toEqual([]);
    expect(kernel.closed()).toBe(false);
  });

  it("by close() gives the device up and leaves no timer", async () => {
    const { fileSystem } = withOperations({ getattr: () => new Promise(() => {}) });
    const kernel = startFakeKernel({ fileSystem });
    kernel.send(OP.GETATTR, 1, ...GETATTR_BODY);
    kernel.session.close();
    expect(kernel.closed()).toBe(true);
    expect(await kernel.session.ended).toBe("closed");
    expect(kernel.clock.pending()).toBe(0);
    kernel.clock.advance(120_000);
    expect(kernel.replies).toEqual([]);
  });

  it("waits in drained() for the last answer", async () => {
    const held = gate();
    const { fileSystem } = withOperations({ fsync: () => held.promise });
    const kernel = startFakeKernel({ fileSystem });
    await kernel.session.drained();
    kernel.send(OP.FSYNC, 1, 1n, 0, 0);
    let done = false;
    const drained = kernel.session.drained().then(() => {
      done = true;
    });
    await settled();
    expect(done).toBe(false);
    held.open();
    await drained;
    expect(kernel.replies).toHaveLength(1);
  });
});

describe("the log", () => {
  it("has one line per operation at debug, without the bytes", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    const created = await kernel.call(OP.CREATE, 1, 2, 0o100644, 0, 0, "file");
    const handle = created.body.readBigUInt64LE(128);
    await kernel.call(OP.WRITE, 2, handle, 0n, 6, 0, 0n, 0, 0, Buffer.from("secret"));
    const [create, write] = kernel.lines;
    expect(kernel.lines).toHaveLength(2);
    expect(create).toMatchObject({ level: "debug", fields: { op: "CREATE", args: { name: "file" }, result: "ok" } });
    expect(write?.fields).toMatchObject({
      op: "WRITE",
      node: 2,
      args: { offset: 0, size: 6, data: "<6 bytes>" },
      result: "ok",
      reply: 6,
      ms: 0,
      uid: CALLER.uid,
      pid: CALLER.pid,
    });
  });

  it("costs nothing when debug is off, but shows what was slow", async () => {
    const held = gate();
    const { fileSystem } = withOperations({ flush: () => held.promise });
    const kernel = startFakeKernel({ fileSystem, level: "info" });
    await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY);
    expect(kernel.debugCalls()).toBe(0);
    kernel.send(25, 1, 1n, 0n, 0n);
    kernel.clock.advance(1001);
    held.open();
    await kernel.session.drained();
    expect(kernel.lines).toMatchObject([
      { level: "warn", message: "slow operation", fields: { op: "FLUSH", ms: 1001, result: "ok" } },
    ]);
  });
});

describe("INIT", () => {
  const start = () => startFakeKernel({ fileSystem: createMemoryFileSystem(), init: false });
  const WANTED = [0, 3, 5, 13, 14, 15, 18, 21, 22, 23, 25, 28, 29, 30];
  const bits = (value: number) => Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (value >>> bit) & 1);

  it("agrees on 7.45 and the flags we want", async () => {
    const kernel = start();
    const { error, body } = await kernel.call(OP.INIT, 0, ...initBody());
    expect(error).toBe(0);
    expect(body).toHaveLength(64);
    expect([body.readUInt32LE(0), body.readUInt32LE(4), body.readUInt32LE(8)]).toEqual([7, 45, 131072]);
    expect(bits(body.readUInt32LE(12))).toEqual(WANTED);
    expect([body.readUInt16LE(16), body.readUInt16LE(18)]).toEqual([64, 48]);
    expect([body.readUInt32LE(20), body.readUInt32LE(24), body.readUInt16LE(28)]).toEqual([1024 * 1024, 1, 256]);
    expect(body.subarray(30)).toEqual(Buffer.alloc(34));
    expect(await kernel.session.initialized).toMatchObject({ minor: 45, kernelMinor: 45, setxattrExtended: true });
  });

  it("takes the smaller minor, and only what is offered", async () => {
    const old = start();
    const { body } = await old.call(OP.INIT, 0, ...[7, 31, 131072, 0x03fffffb]);
    expect(body.readUInt32LE(4)).toBe(31);
    expect(bits(body.readUInt32LE(12))).toEqual(WANTED.filter((bit) => bit < 26));
    expect((await old.session.initialized).setxattrExtended).toBe(false);
    const newer = await start().call(OP.INIT, 0, ...initBody(60));
    expect(newer.body.readUInt32LE(4)).toBe(45);
  });

  it("tells a newer major to ask again", async () => {
    const kernel = start();
    const { error, body } = await kernel.call(OP.INIT, 0, ...initBody(3, 8));
    expect([error, body.readUInt32LE(0)]).toEqual([0, 7]);
    await kernel.call(OP.INIT, 0, ...initBody());
    expect((await kernel.session.initialized).minor).toBe(45);
  });

  it.each([
    [7, 30],
    [6, 99],
  ])("refuses %i.%i with a clear line", async (major, minor) => {
    const kernel = start();
    const reply = await kernel.call(OP.INIT, 0, ...initBody(minor, major));
    expect(reply).toMatchObject({ error: -ERRNO.EPROTO, body: Buffer.alloc(0) });
    await expect(kernel.session.initialized).rejects.toThrow(
      `the kernel speaks FUSE ${major}.${minor}; 7.31 or newer is needed (Linux 5.4)`,
    );
  });

  it("comes once: a second one is answered EIO", async () => {
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem() });
    expect((await kernel.call(OP.INIT, 0, ...initBody())).error).toBe(-ERRNO.EIO);
    expect((await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY)).error).toBe(0);
  });

  it("decides how long the fixed part of SETXATTR is", async () => {
    for (const [flags, fixedPart] of [
      [1 << 29, bytesOf(1, 0, 0, 0)],
      [0, bytesOf(1, 0)],
    ] as const) {
      const memory = createMemoryFileSystem();
      const kernel = startFakeKernel({ fileSystem: memory, init: false });
      await kernel.call(OP.INIT, 0, ...initBody(45, 7, flags));
      expect((await kernel.call(21, 1, fixedPart, "user.a", Buffer.from("v"))).error).toBe(0);
      expect(await memory.listxattr({} as Caller, kernelNodeId(1))).toEqual(["user.a"]);
    }
  });
});
