/** READDIR and READDIRPLUS: whole records, never more than asked, and only what was handed out is counted. */
import { describe, expect, it } from "vitest";
import { type FolderEntry, FsError } from "../../src/engine/api/index.ts";
import { inodeId } from "../../src/metadata/ids.ts";
import { type Arguments, FOUND, READ, recorder } from "./call-recorder.ts";
import { bytesOf, type FakeKernel, startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

/** Records of a READDIR or READDIRPLUS reply. */
function records(
  body: Buffer,
  plus: boolean,
): { name: string; inode: bigint; cookie: bigint; type: number; nodeid: bigint }[] {
  const list = [];
  for (let at = 0; at < body.length; ) {
    const dirent = at + (plus ? 128 : 0);
    const length = body.readUInt32LE(dirent + 16);
    list.push({
      name: body.toString("utf8", dirent + 24, dirent + 24 + length),
      inode: body.readBigUInt64LE(dirent),
      cookie: body.readBigUInt64LE(dirent + 8),
      type: body.readUInt32LE(dirent + 20),
      nodeid: plus ? body.readBigUInt64LE(at) : 0n,
    });
    at = dirent + Math.ceil((24 + length) / 8) * 8;
  }
  return list;
}

describe.each([
  ["READDIR", 28, false],
  ["READDIRPLUS", 44, true],
] as const)("%s", (_, opcode, plus) => {
  async function folderOf(
    count: number,
  ): Promise<{ kernel: FakeKernel; names: string[]; fs: ReturnType<typeof createMemoryFileSystem> }> {
    const fs = createMemoryFileSystem(() => 0);
    const kernel = startFakeKernel({ fileSystem: fs });
    const names: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const name = `${index}-${"ä".repeat(index % 60)}`;
      names.push(name);
      await kernel.call(8, 1, 0o100644, 0, 0, 0, name);
    }
    fs.counts.clear();
    await kernel.call(27, 1, 0, 0);
    return { kernel, names, fs };
  }

  it.each([512, 4096, 32768])("in pages of %i bytes lists each name once, never more than asked", async (size) => {
    const { kernel, names, fs } = await folderOf(700);
    const seen = [];
    for (let cookie = 0n; ; ) {
      const { error, body } = await kernel.call(opcode, 1, ...READ(1n, cookie, size));
      expect(error).toBe(0);
      expect(body.length).toBeLessThanOrEqual(size);
      if (body.length === 0) break;
      const page = records(body, plus);
      seen.push(...page);
      cookie = page.at(-1)?.cookie ?? 0n;
    }
    expect(seen.map(({ name }) => name)).toEqual([".", "..", ...names]);
    expect(new Set(seen.slice(2).map(({ type }) => type))).toEqual(new Set([8]));
    // The kernel counts what it was handed, and the file system must believe the same.
    const handedOut = new Map<number, number>();
    for (const { nodeid } of seen)
      if (nodeid !== 0n) handedOut.set(Number(nodeid), (handedOut.get(Number(nodeid)) ?? 0) + 1);
    expect(fs.counts).toEqual(handedOut);
    expect(handedOut.size).toBe(plus ? 700 : 0);
  });

  it("uses the room it is given", async () => {
    const { kernel } = await folderOf(700);
    const { body } = await kernel.call(opcode, 1, ...READ(1n, 0n, 16384));
    expect(16384 - body.length).toBeLessThan((plus ? 128 : 0) + 24 + 128);
  });

  it("refuses a size in which no entry fits", async () => {
    const { kernel } = await folderOf(0);
    expect((await kernel.call(opcode, 1, ...READ(1n, 0n, 16))).error).toBe(-22);
  });

  it("takes back what was granted when a later page fails", async () => {
    const fs = createMemoryFileSystem();
    const forgotten: unknown[] = [];
    let calls = 0;
    const entry: FolderEntry = { name: "a", inode: inodeId(2), kind: "file", cookie: 5, found: FOUND };
    const kernel = startFakeKernel({
      fileSystem: {
        ...fs,
        readdir: async () => {
          calls += 1;
          if (calls > 1) throw new FsError("EIO", "lost");
          return [entry];
        },
        forget: (list) => void forgotten.push(...list),
      },
    });
    expect((await kernel.call(opcode, 1, ...READ(1n, 0n, 4096))).error).toBe(-5);
    expect(forgotten).toEqual(plus ? [{ kernelNodeId: FOUND.kernelNodeId, count: 1 }] : []);
  });
});

it("READDIR of an absurd size asks for no more than a megabyte of entries", async () => {
  const { calls, kernel } = recorder({ readdir: [] });
  expect((await kernel.call(28, 1, ...READ(1n, 0n, 0xffff_ffff))).error).toBe(0);
  expect(Number(calls[0]?.[3])).toBeLessThanOrEqual(2 ** 20 / 32);
});

it("READDIRPLUS never hands out the folder itself or its parent", async () => {
  const dots: FolderEntry[] = [
    { name: ".", inode: inodeId(1), kind: "folder", cookie: 1, found: FOUND },
    { name: "..", inode: inodeId(1), kind: "folder", cookie: 2, found: FOUND },
  ];
  const { calls, kernel } = recorder({
    readdir: (...args: Arguments) => dots.filter(({ cookie }) => cookie > Number(args[2])),
  });
  const { body } = await kernel.call(44, 1, ...READ(1n, 0n, 4096));
  expect(records(body, true).map(({ name, nodeid }) => [name, nodeid])).toEqual([
    [".", 0n],
    ["..", 0n],
  ]);
  expect(calls.map(([name]) => name)).not.toContain("forget");
});

it("READDIRPLUS without attributes for an entry says node 0 and nothing else", async () => {
  const entry: FolderEntry = { name: "abc", inode: inodeId(7), kind: "symlink", cookie: 9 };
  let served = false;
  const { kernel } = recorder({
    readdir: () => {
      if (served) return [];
      served = true;
      return [entry];
    },
  });
  const { body } = await kernel.call(44, 1, ...READ(1n, 0n, 4096));
  expect(body.toString("hex")).toBe(
    bytesOf(Buffer.alloc(128), 7n, 9n, 3, 10, Buffer.from("abc\0\0\0\0\0")).toString("hex"),
  );
});
