/** A session that takes over the mount of one that died: what comes again, and what was at hand. */
import { describe, expect, it } from "vitest";
import { type Caller, type Done, type FileSystem, handleId } from "../../src/engine/api/index.ts";
import type { Connection } from "../../src/fuse/init.ts";
import type { RequestsInHand } from "../../src/fuse/requests-in-hand.ts";
import type { KernelNodeId } from "../../src/metadata/ids.ts";
import { FOUND } from "./call-recorder.ts";
import { gate, type Part, requestBytes, settled, startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

const OP = { GETATTR: 3, SETATTR: 4, SYMLINK: 6, MKNOD: 8, MKDIR: 9, UNLINK: 10, RMDIR: 11, RENAME: 12, LINK: 13 };
const MORE = { OPEN: 14, SETXATTR: 21, REMOVEXATTR: 24, OPENDIR: 27, CREATE: 35, RENAME2: 45 };
const EIO = 5;
const AGAIN = 2n ** 63n;
const RESEND = { id: 0, resent: false, error: 7 };
const GETATTR_BODY = [0, 0, 0n];

const CONNECTION: Connection = {
  minor: 45,
  kernelMinor: 45,
  flags: 0,
  flags2: 0,
  maxWrite: 1 << 20,
  passthrough: false,
  setxattrExtended: false,
  resend: true,
};

/** As a file would hold it. */
function keptLists(left: readonly number[] = [], suspects: readonly number[] = [], wasOwnFault = true) {
  const kept = { inFlight: [] as number[][], suspected: [] as number[][] };
  const inHand: RequestsInHand = {
    left,
    wasOwnFault,
    suspects: new Set(suspects),
    inFlight: (ids) => void kept.inFlight.push([...ids]),
    suspected: (ids) => void kept.suspected.push([...ids]),
  };
  return { kept, inHand };
}

/** A file system that says what was done, and fails when something is to be done again. */
function hasDone(done: Partial<Done>): FileSystem {
  const opened = undefined;
  const openMade = () => Promise.reject(new Error("opened again"));
  const told: Done = { found: async () => FOUND, opened, openMade, ...done };
  return new Proxy({} as FileSystem, {
    get: (_, name) => {
      if (name === "done") return (request: number) => (request === 40 ? told : undefined);
      if (name === "getattr") return async () => FOUND;
      if (name === "noteProgramTime") return () => {};
      return () => Promise.reject(new Error(`${String(name)} was done again`));
    },
  });
}

const successor = (fileSystem: FileSystem, more: object = {}) =>
  startFakeKernel({ fileSystem, init: false, connection: CONNECTION, ...more });

describe("a daemon that takes over", () => {
  it("asks for what was not answered before it reads anything, and needs no INIT", async () => {
    const kernel = successor(createMemoryFileSystem());
    expect(kernel.replies).toEqual([{ ...RESEND, body: Buffer.alloc(0) }]);
    expect((await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY)).error).toBe(0);
  });

  const opened = { handle: handleId(77), keepCache: false };
  const cases: readonly [string, number, Part[], number][] = [
    ["MKDIR", OP.MKDIR, [0o755, 0, "x"], 128],
    ["MKNOD", OP.MKNOD, [0o100644, 0, 0, 0, "x"], 128],
    ["SYMLINK", OP.SYMLINK, ["x", "target"], 128],
    ["LINK", OP.LINK, [2n, "x"], 128],
    ["UNLINK", OP.UNLINK, ["x"], 0],
    ["RMDIR", OP.RMDIR, ["x"], 0],
    ["RENAME", OP.RENAME, [1n, "x", "y"], 0],
    ["RENAME2", MORE.RENAME2, [1n, 2, 0, "x", "y"], 0],
    ["SETXATTR", MORE.SETXATTR, [1, 1, "user.x", Buffer.from("v")], 0],
    ["REMOVEXATTR", MORE.REMOVEXATTR, ["user.x"], 0],
    ["SETATTR", OP.SETATTR, [1 << 3, 0, 0n, 10n, Buffer.alloc(64)], 104],
    ["OPEN", MORE.OPEN, [0o1001, 0], 16],
    ["OPENDIR", MORE.OPENDIR, [0, 0], 16],
    ["CREATE", MORE.CREATE, [0o301, 0o644, 0, 0, "x"], 144],
  ];
  it.each(cases)("answers %s that was done, and does it no second time", async (_, opcode, body, size) => {
    const kernel = successor(hasDone({ opened, openMade: async () => ({ ...FOUND, ...opened }) }));
    kernel.sendRaw(requestBytes({ opcode, id: AGAIN + 40n }, ...body));
    const reply = await kernel.replyTo(40);
    expect([reply.error, reply.resent, reply.body.length]).toEqual([0, true, size]);
    if (opcode === MORE.CREATE) expect(reply.body.readBigUInt64LE(128)).toBe(77n);
  });

  it("does what is new under a number that was done: the kernel counts on", async () => {
    const kernel = successor(hasDone({}));
    kernel.sendRaw(requestBytes({ opcode: OP.UNLINK, id: 40n }, "x"));
    expect((await kernel.replyTo(40)).error).toBe(-EIO);
  });

  it("opens what was made and not yet opened, without cutting it short", async () => {
    const flags: unknown[] = [];
    const fileSystem: FileSystem = {
      ...createMemoryFileSystem(),
      done: () => ({
        found: async () => FOUND,
        opened: undefined,
        openMade: async (_caller, how) => {
          flags.push(how);
          return { ...FOUND, ...opened };
        },
      }),
    };
    const kernel = successor(fileSystem);
    const body = [0o1301, 0o644, 0, 0, "x"];
    kernel.sendRaw(requestBytes({ opcode: MORE.CREATE, id: AGAIN + 40n }, ...body));
    expect((await kernel.replyTo(40)).error).toBe(0);
    expect(flags).toEqual([expect.objectContaining({ write: true, truncate: false, exclusive: false })]);
  });
});

describe("a request that was at hand when two daemons died of themselves", () => {
  it("fails, and the log says which; others are served", async () => {
    const { inHand } = keptLists([], [40]);
    const kernel = successor(createMemoryFileSystem(), { inHand });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: AGAIN + 40n }, ...GETATTR_BODY));
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: AGAIN + 42n }, ...GETATTR_BODY));
    expect([(await kernel.replyTo(40)).error, (await kernel.replyTo(42)).error]).toEqual([-EIO, 0]);
    const [line] = kernel.lines.filter(({ level }) => level === "error");
    expect(line).toMatchObject({ fields: { op: "GETATTR", id: 40 } });
  });

  it("is answered all the same where it was done: nothing of it is left to die of", async () => {
    const { inHand, kept } = keptLists([], [40]);
    const kernel = successor(hasDone({}), { inHand });
    kernel.sendRaw(requestBytes({ opcode: OP.UNLINK, id: AGAIN + 40n }, "x"));
    expect((await kernel.replyTo(40)).error).toBe(0);
    expect(kept.suspected).toEqual([[]]);
  });

  it("is written down before it is begun, until it is answered; what comes first is not", async () => {
    const { inHand, kept } = keptLists();
    const held = gate();
    const memory = createMemoryFileSystem();
    const getattr = async (caller: Caller, kernelNodeId: KernelNodeId) => {
      await held.promise;
      return memory.getattr(caller, kernelNodeId);
    };
    const kernel = successor({ ...memory, getattr }, { inHand });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: AGAIN + 40n }, ...GETATTR_BODY));
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: 42n }, ...GETATTR_BODY));
    expect(kept.suspected).toEqual([[40]]);
    held.open();
    await Promise.all([kernel.replyTo(40), kernel.replyTo(42)]);
    await settled();
    expect(kept).toEqual({ inFlight: [], suspected: [[40], []] });
  });

  it("is none where one of them was killed, and stays suspected of what the other died of", async () => {
    const { inHand, kept } = keptLists([], [40], false);
    const held = gate();
    const memory = createMemoryFileSystem();
    const getattr = (caller: Caller, kernelNodeId: KernelNodeId) =>
      held.promise.then(() => memory.getattr(caller, kernelNodeId));
    const kernel = successor({ ...memory, getattr }, { inHand });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: AGAIN + 40n }, ...GETATTR_BODY));
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: AGAIN + 42n }, ...GETATTR_BODY));
    expect(kept.suspected).toEqual([[], [40]]);
    held.open();
    expect([(await kernel.replyTo(40)).error, (await kernel.replyTo(42)).error]).toEqual([0, 0]);
    await settled();
    expect(kept.suspected.at(-1)).toEqual([]);
  });

  it("is none where a daemon gave way of its own will", async () => {
    const { inHand, kept } = keptLists();
    const kernel = successor({ ...createMemoryFileSystem(), getattr: () => gate<never>().promise }, { inHand });
    kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: AGAIN + 40n }, ...GETATTR_BODY));
    kernel.session.handOver();
    expect(kept.suspected.at(-1)).toEqual([]);
  });
});

describe("with a kernel that sends nothing again", () => {
  it("what is read is written down before anything of it is begun", async () => {
    const { inHand, kept } = keptLists();
    const seen: number[][] = [];
    const memory = createMemoryFileSystem();
    const getattr = (caller: Caller, kernelNodeId: KernelNodeId) => {
      seen.push(kept.inFlight.at(-1) ?? []);
      return memory.getattr(caller, kernelNodeId);
    };
    const kernel = startFakeKernel({ fileSystem: { ...memory, getattr }, inHand, noResend: true });
    kernel.sendRaw(
      requestBytes({ opcode: OP.GETATTR, id: 40n }, ...GETATTR_BODY),
      requestBytes({ opcode: OP.GETATTR, id: 42n }, ...GETATTR_BODY),
    );
    await kernel.replyTo(42);
    expect(seen).toEqual([
      [40, 42],
      [40, 42],
    ]);
    expect(kept.inFlight).toHaveLength(1);
  });

  it("it is told to the programs that wait, and nobody is asked", () => {
    const { inHand } = keptLists([40, 42]);
    const connection = { ...CONNECTION, resend: false };
    const kernel = successor(createMemoryFileSystem(), { inHand, connection });
    expect(kernel.replies.map(({ id, error }) => [id, error])).toEqual([
      [40, -EIO],
      [42, -EIO],
    ]);
  });

  it("with one that does nothing is written", async () => {
    const { inHand, kept } = keptLists();
    const kernel = startFakeKernel({ fileSystem: createMemoryFileSystem(), inHand });
    await kernel.call(OP.GETATTR, 1, ...GETATTR_BODY);
    expect(kept).toEqual({ inFlight: [], suspected: [] });
  });
});

it("requests at hand together have places of their own, above those of a daemon before, until they are answered", async () => {
  const marks: Caller["mark"][] = [];
  const callers: Caller[] = [];
  const held = gate();
  const memory = createMemoryFileSystem();
  const getattr = async (caller: Caller, kernelNodeId: KernelNodeId) => {
    callers.push(caller);
    marks.push(caller.mark && { id: caller.mark.id, place: caller.mark.place });
    await held.promise;
    return memory.getattr(caller, kernelNodeId);
  };
  const kernel = successor({ ...memory, getattr }, { firstPlace: 5 });
  for (const id of [40n, 42n]) kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id }, ...GETATTR_BODY));
  expect(marks).toEqual([
    { id: 40, place: 5 },
    { id: 42, place: 6 },
  ]);
  held.open();
  await Promise.all([kernel.replyTo(40), kernel.replyTo(42)]);
  await settled();
  expect(callers.map(({ mark }) => mark)).toEqual([undefined, undefined]);
  kernel.sendRaw(requestBytes({ opcode: OP.GETATTR, id: 44n }, ...GETATTR_BODY));
  await kernel.replyTo(44);
  expect([5, 6]).toContain(marks[2]?.place);
});
