/**
 * Every opcode from the kernel's bytes to the call of the file system and back. Requests and
 * expected replies are made of the numbers in fuse-protocol.md, not of our tables.
 */
import { describe, expect, it } from "vitest";
import { FsError, handleId, type SetAttributes } from "../../src/engine/api/index.ts";
import { parseMessage } from "../../src/fuse/message.ts";
import { OPERATIONS } from "../../src/fuse/opcodes.ts";
import { type Arguments, EMPTY, FOUND, READ, recorder, STAT } from "./call-recorder.ts";
import { bytesOf, type Part, requestBytes } from "./fake-kernel.ts";

/** fuse_attr of STAT. */
const ATTR = bytesOf(
  4_294_967_299n,
  5_368_709_127n,
  77n,
  1n,
  5_000_000_003n,
  -5n,
  ...[2, 4, 999_999_999, 0o104751, 3, 11, 12, 0, 4096, 0],
);
const ENTRY = bytesOf(8_589_934_593n, 0n, 3600n, 1n, 0, 500_500_000, ATTR);

interface Case {
  name: string;
  opcode: number;
  nodeid?: number;
  body: Part[];
  answers?: Record<string, unknown>;
  calls: [string, ...Arguments][];
  reply: Buffer;
}

const CASES: Case[] = [
  {
    name: "LOOKUP",
    opcode: 1,
    nodeid: 9,
    body: ["ä"],
    answers: { lookup: FOUND },
    calls: [["lookup", 9, "ä"]],
    reply: ENTRY,
  },
  {
    name: "GETATTR",
    opcode: 3,
    body: [0, 0, 5n],
    answers: { getattr: { stat: STAT, validMs: 0 } },
    calls: [["getattr", 1, undefined]],
    reply: bytesOf(0n, 0, 0, ATTR),
  },
  {
    name: "GETATTR of a handle",
    opcode: 3,
    body: [1, 0, 5n],
    answers: { getattr: { stat: STAT, validMs: 2500 } },
    calls: [["getattr", 1, 5]],
    reply: bytesOf(2n, 500_000_000, 0, ATTR),
  },
  {
    name: "READLINK",
    opcode: 5,
    body: [],
    answers: { readlink: "a/ä" },
    calls: [["readlink", 1]],
    reply: Buffer.from("a/ä"),
  },
  {
    name: "SYMLINK",
    opcode: 6,
    body: ["n", "../t"],
    answers: { symlink: FOUND },
    calls: [["symlink", 1, "n", "../t"]],
    reply: ENTRY,
  },
  {
    name: "MKNOD of a fifo",
    opcode: 8,
    body: [0o010640, 0, 0o022, 0, "p"],
    answers: { mknod: FOUND },
    calls: [["mknod", 1, "p", "fifo", 0o640, 0]],
    reply: ENTRY,
  },
  {
    name: "MKNOD of a device",
    opcode: 8,
    body: [0o060600, 0x810, 0, 0, "d"],
    answers: { mknod: FOUND },
    calls: [["mknod", 1, "d", "block", 0o600, 0x810]],
    reply: ENTRY,
  },
  {
    name: "MKDIR",
    opcode: 9,
    body: [0o1755, 0, "d"],
    answers: { mkdir: FOUND },
    calls: [["mkdir", 1, "d", 0o1755]],
    reply: ENTRY,
  },
  { name: "UNLINK", opcode: 10, body: ["n"], calls: [["unlink", 1, "n"]], reply: EMPTY },
  { name: "RMDIR", opcode: 11, body: ["n"], calls: [["rmdir", 1, "n"]], reply: EMPTY },
  {
    name: "RENAME",
    opcode: 12,
    nodeid: 3,
    body: [4n, "a", "b"],
    calls: [["rename", { parent: 3, name: "a" }, { parent: 4, name: "b" }, { noReplace: false, exchange: false }]],
    reply: EMPTY,
  },
  {
    name: "RENAME2 NOREPLACE",
    opcode: 45,
    nodeid: 3,
    body: [4n, 1, 0, "a", "b"],
    calls: [["rename", { parent: 3, name: "a" }, { parent: 4, name: "b" }, { noReplace: true, exchange: false }]],
    reply: EMPTY,
  },
  {
    name: "RENAME2 EXCHANGE",
    opcode: 45,
    nodeid: 3,
    body: [4n, 2, 0, "a", "b"],
    calls: [["rename", { parent: 3, name: "a" }, { parent: 4, name: "b" }, { noReplace: false, exchange: true }]],
    reply: EMPTY,
  },
  {
    name: "LINK",
    opcode: 13,
    nodeid: 3,
    body: [8n, "n"],
    answers: { link: FOUND },
    calls: [["link", 8, 3, "n"]],
    reply: ENTRY,
  },
  {
    name: "OPEN",
    opcode: 14,
    nodeid: 3,
    body: [0o103002, 0],
    answers: { open: { handle: 2 ** 40 + 1, keepCache: true } },
    calls: [["open", 3, { read: true, write: true, append: true, truncate: true, exclusive: false }]],
    reply: bytesOf(2n ** 40n + 1n, 2, 0),
  },
  {
    name: "OPEN that drops the cache",
    opcode: 14,
    nodeid: 3,
    body: [0o100001, 0],
    answers: { open: { handle: 5, keepCache: false } },
    calls: [["open", 3, { read: false, write: true, append: false, truncate: false, exclusive: false }]],
    reply: bytesOf(5n, 0, 0),
  },
  {
    name: "OPEN of a passthrough file, whose pages do not count",
    opcode: 14,
    nodeid: 3,
    body: [0o100001, 0],
    answers: { open: { handle: 5, keepCache: true, backing: 7 } },
    calls: [["open", 3, { read: false, write: true, append: false, truncate: false, exclusive: false }]],
    reply: bytesOf(5n, 0x80, 7),
  },
  {
    name: "OPEN whose close need not be told",
    opcode: 14,
    nodeid: 3,
    body: [0o100000, 0],
    answers: { open: { handle: 5, keepCache: true, noFlush: true } },
    calls: [["open", 3, { read: true, write: false, append: false, truncate: false, exclusive: false }]],
    reply: bytesOf(5n, 0x22, 0),
  },
  {
    name: "OPEN that clears set-user-id",
    opcode: 14,
    nodeid: 3,
    body: [0o101001, 1],
    answers: { open: { handle: 5, keepCache: false }, setattr: { stat: STAT, validMs: 0 } },
    calls: [
      ["open", 3, { read: false, write: true, append: false, truncate: true, exclusive: false }],
      ["setattr", 3, { killPrivileges: true, handle: 5 }],
    ],
    reply: bytesOf(5n, 0, 0),
  },
  {
    name: "CREATE",
    opcode: 35,
    body: [0o100301, 0o104751, 0o022, 1, "new"],
    answers: { create: { ...FOUND, handle: 6, keepCache: true } },
    calls: [
      ["create", 1, "new", 0o4751, { read: false, write: true, append: false, truncate: false, exclusive: true }],
    ],
    reply: bytesOf(ENTRY, 6n, 2, 0),
  },
  {
    name: "CREATE of a file that was there with set-user-id",
    opcode: 35,
    body: [0o101102, 0o100644, 0o022, 1, "old"],
    answers: {
      create: { ...FOUND, stat: { ...STAT, mode: 0o6777 }, handle: 6, keepCache: false },
      setattr: { stat: STAT, validMs: 1500.5 },
    },
    calls: [
      ["create", 1, "old", 0o644, { read: true, write: true, append: false, truncate: true, exclusive: false }],
      ["setattr", FOUND.kernelNodeId, { killPrivileges: true, handle: 6 }],
    ],
    reply: bytesOf(ENTRY, 6n, 0, 0),
  },
  {
    name: "READ",
    opcode: 15,
    body: READ(6n, 5_368_709_127n, 4096),
    answers: { read: Buffer.from("bytes") },
    calls: [["read", 6, 5_368_709_127, 4096]],
    reply: Buffer.from("bytes"),
  },
  { name: "READ beyond what any file has", opcode: 15, body: READ(6n, 2n ** 62n, 4096), calls: [], reply: EMPTY },
  {
    name: "WRITE",
    opcode: 16,
    body: [6n, 5_368_709_127n, 3, 4, 0n, 0o100001, 0, Buffer.from("abc")],
    calls: [["write", 6, 5_368_709_127, Buffer.from("abc"), { killPrivileges: true }]],
    answers: { write: 3 },
    reply: bytesOf(3, 0),
  },
  {
    name: "WRITE of which only a part fitted",
    opcode: 16,
    body: [6n, 0n, 3, 0, 0n, 0o100001, 0, Buffer.from("abc")],
    calls: [["write", 6, 0, Buffer.from("abc"), { killPrivileges: false }]],
    answers: { write: 2 },
    reply: bytesOf(2, 0),
  },
  {
    name: "STATFS",
    opcode: 17,
    body: [],
    answers: {
      statfs: { blockSize: 4096, blocks: 1, free: 2, available: 3, files: 4, filesFree: 5, nameLength: 255 },
    },
    calls: [["statfs"]],
    reply: bytesOf(1n, 2n, 3n, 4n, 5n, 4096, 255, 4096, Buffer.alloc(28)),
  },
  { name: "RELEASE", opcode: 18, body: [6n, 0, 0, 0n], calls: [["release", 6]], reply: EMPTY },
  { name: "RELEASEDIR", opcode: 29, body: [6n, 0, 0, 0n], calls: [["releasedir", 6]], reply: EMPTY },
  { name: "FSYNC", opcode: 20, body: [6n, 0, 0], calls: [["fsync", 6, false]], reply: EMPTY },
  { name: "FSYNC of data only", opcode: 20, body: [6n, 1, 0], calls: [["fsync", 6, true]], reply: EMPTY },
  { name: "FSYNCDIR", opcode: 30, body: [6n, 0, 0], calls: [["fsyncdir", 6]], reply: EMPTY },
  { name: "FLUSH", opcode: 25, body: [6n, 0n, 0n], calls: [["flush", 6]], reply: EMPTY },
  {
    name: "SETXATTR",
    opcode: 21,
    body: [3, 1, 0, 0, "user.a", Buffer.from("v\0w")],
    calls: [["setxattr", 1, "user.a", Buffer.from("v\0w"), { create: true, replace: false }]],
    reply: EMPTY,
  },
  {
    name: "GETXATTR",
    opcode: 22,
    body: [5, 0, "user.a"],
    answers: { getxattr: Buffer.from("value") },
    calls: [["getxattr", 1, "user.a"]],
    reply: Buffer.from("value"),
  },
  {
    name: "GETXATTR that asks for the length",
    opcode: 22,
    body: [0, 0, "user.a"],
    answers: { getxattr: Buffer.from("value") },
    calls: [["getxattr", 1, "user.a"]],
    reply: bytesOf(5, 0),
  },
  {
    name: "LISTXATTR",
    opcode: 23,
    body: [100, 0],
    answers: { listxattr: ["user.a", "user.ä"] },
    calls: [["listxattr", 1]],
    reply: Buffer.from("user.a\0user.ä\0"),
  },
  {
    name: "LISTXATTR that asks for the length",
    opcode: 23,
    body: [0, 0],
    answers: { listxattr: ["user.a", "user.ä"] },
    calls: [["listxattr", 1]],
    reply: bytesOf(15, 0),
  },
  { name: "REMOVEXATTR", opcode: 24, body: ["user.a"], calls: [["removexattr", 1, "user.a"]], reply: EMPTY },
  {
    name: "OPENDIR",
    opcode: 27,
    body: [0, 0],
    answers: { opendir: { handle: 6, keepCache: false } },
    calls: [["opendir", 1]],
    reply: bytesOf(6n, 0, 0),
  },
  {
    name: "OPENDIR of a folder whose listing is kept",
    opcode: 27,
    body: [0, 0],
    answers: { opendir: { handle: 6, keepCache: true } },
    calls: [["opendir", 1]],
    // CACHE_DIR and KEEP_CACHE: what is listed is kept from now on, and what was kept still holds.
    reply: bytesOf(6n, 10, 0),
  },
  {
    name: "LOOKUP of a name that is not there, which may be remembered",
    opcode: 1,
    body: ["a"],
    answers: { lookup: { kernelNodeId: undefined, entryValidMs: 90_500 } },
    calls: [["lookup", 1, "a"]],
    reply: bytesOf(0n, 0n, 90n, 0n, 500_000_000, Buffer.alloc(84 + 8)),
  },
  { name: "ACCESS", opcode: 34, body: [5, 0], calls: [["access", 1, 5]], reply: EMPTY },
  {
    name: "FALLOCATE",
    opcode: 43,
    body: [6n, 4096n, 8192n, 3, 0],
    calls: [["allocate", 6, 3, 4096, 8192]],
    reply: EMPTY,
  },
  {
    name: "LSEEK to data",
    opcode: 46,
    body: [6n, 100n, 3, 0],
    answers: { seek: 2 ** 33 },
    calls: [["seek", 6, "data", 100]],
    reply: bytesOf(2n ** 33n),
  },
  {
    name: "LSEEK to a hole",
    opcode: 46,
    body: [6n, 100n, 4, 0],
    answers: { seek: 200 },
    calls: [["seek", 6, "hole", 100]],
    reply: bytesOf(200n),
  },
  {
    name: "STATX",
    opcode: 52,
    body: [1, 0, 6n, 0, 0xfff],
    answers: {
      getattr: {
        stat: { ...STAT, kind: "character", rdev: ((70_000 & ~0xff) << 12) | (259 << 8) | (70_000 & 0xff) },
        validMs: 1000,
      },
    },
    calls: [["getattr", 1, 6]],
    reply: bytesOf(
      ...[1n, 0, 0, 0n, 0n],
      ...[0xfff, 4096, 0n, 3, 11, 12],
      bytesOf(0o024751).subarray(0, 4),
      ...[4_294_967_299n, 5_368_709_127n, 77n, 0n],
      ...[1n, 2, 0, 7n, 8, 0, -5n, 999_999_999, 0, 5_000_000_003n, 4, 0],
      ...[259, 70_000, 0, 0],
      Buffer.alloc(112),
    ),
  },
  { name: "DESTROY", opcode: 38, nodeid: 0, body: [], calls: [], reply: EMPTY },
];

describe("an operation", () => {
  it.each(CASES.map((one) => [one.name, one] as const))(
    "%s",
    async (_, { opcode, nodeid = 1, body, answers = {}, ...expected }) => {
      const { calls, kernel } = recorder(answers);
      const reply = await kernel.call(opcode, nodeid, ...body);
      expect(reply.error).toBe(0);
      expect(calls).toEqual(expected.calls);
      expect(reply.body.toString("hex")).toBe(expected.reply.toString("hex"));
    },
  );

  it("that is served has a case here", () => {
    const covered = new Set([...CASES.map(({ opcode }) => opcode), 4, 28, 44]);
    const missing = [...OPERATIONS.values()].filter(({ kind, code }) => kind === "served" && !covered.has(code));
    expect(missing.map(({ name }) => name)).toEqual([]);
  });
});

describe("SETATTR", () => {
  const setattr = (valid: number): Part[] => [
    ...[valid, 0, 6n, 5_368_709_127n, 0n, 1n, -2n, 9n],
    ...[11, 12, 13, 0o104604, 0, 1001, 1002, 0],
  ];
  it.each<[string, number, SetAttributes]>([
    ["mode", 1, { mode: 0o4604 }],
    ["owner", 2 | 4 | 0x800, { uid: 1001, gid: 1002, killPrivileges: true }],
    ["group", 4, { gid: 1002 }],
    ["size", 8 | 0x200, { size: 5_368_709_127 }],
    ["size of a handle", 8 | 0x40 | 0x800, { size: 5_368_709_127, handle: handleId(6), killPrivileges: true }],
    ["times", 0x30, { atime: { seconds: 1, nanoseconds: 11 }, mtime: { seconds: -2, nanoseconds: 12 } }],
    ["times to now", 0x30 | 0x180, { atime: "now", mtime: "now" }],
    ["one time", 0x20, { mtime: { seconds: -2, nanoseconds: 12 } }],
    ["nothing but privileges", 0x800, { killPrivileges: true }],
    ["an owner that is left as it is", 0, { killPrivileges: true }],
  ])("of %s", async (_, valid, change) => {
    const { calls, kernel } = recorder({ setattr: { stat: STAT, validMs: 0 } });
    const reply = await kernel.call(4, 1, ...setattr(valid));
    expect(reply.body.toString("hex")).toBe(bytesOf(0n, 0, 0, ATTR).toString("hex"));
    expect(calls).toEqual([["setattr", 1, change]]);
  });

  it.each([
    ["a handle and ctime", 0x440, 6],
    ["ctime", 0x400, undefined],
    ["a handle", 0x40, 6],
  ])("of nothing but %s only asks", async (_, valid, handle) => {
    const { calls, kernel } = recorder({ getattr: { stat: STAT, validMs: 0 } });
    expect((await kernel.call(4, 1, ...setattr(valid))).body).toHaveLength(104);
    expect(calls).toEqual([["getattr", 1, handle]]);
  });
});

describe("what is given back", () => {
  it("by FORGET and BATCH_FORGET goes to the file system without a reply", async () => {
    const { calls, kernel } = recorder({});
    kernel.send(2, 9, 3n);
    kernel.send(42, 0, 2, 0, 5n, 1n, 2n ** 40n, 7n);
    expect(calls).toEqual([
      ["forget", [{ kernelNodeId: 9, count: 3 }]],
      [
        "forget",
        [
          { kernelNodeId: 5, count: 1 },
          { kernelNodeId: 2 ** 40, count: 7 },
        ],
      ],
    ]);
    expect(kernel.replies).toEqual([]);
  });

  it("is the handle when clearing privileges failed after OPEN", async () => {
    const { calls, kernel } = recorder({
      open: { handle: 5, keepCache: false },
      setattr: () => Promise.reject(new FsError("EROFS", "read only")),
    });
    expect((await kernel.call(14, 3, 0o1001, 1)).error).toBe(-30);
    expect(calls.at(-1)).toEqual(["release", 5]);
  });
});

it("security labels and groups behind a body are understood, and names taken from the front", () => {
  const label = Buffer.from("security.selinux\0system_u:x\0");
  const context = bytesOf(48, 1, 11, 0, label, Buffer.alloc(32 - label.length));
  const unknown = bytesOf(16, 99, 0n);
  const extensions = Buffer.concat([context, unknown, bytesOf(20, 32, 2, 4242, 4243, 0)]);
  const message = parseMessage(
    requestBytes({ opcode: 9, extensions: extensions.length / 8 }, 0o755, 0o022, "d", extensions),
  );
  expect(OPERATIONS.get(9)?.decode(message, { setxattrExtended: true })).toEqual({
    mode: 0o755,
    umask: 0o022,
    name: "d",
    extensions: {
      securityContexts: [{ name: "security.selinux", label: Buffer.from("system_u:x\0") }],
      groups: [4242, 4243],
    },
  });
});
