/**
 * The root's attributes on their way to the kernel, which has none at first: in whatever order the answer and an
 * invalidation come, the first caller is not judged by mode 0, and no invalidation is lost.
 */
import { describe, expect, it } from "vitest";
import type { KnownRows } from "../../src/engine/api/index.ts";
import { createKernelCache } from "../../src/fuse/kernel-cache.ts";
import { SILENT } from "../../src/lib/log.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { CONNECTION } from "../support/connection.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";
import { type FakeKernel, type Part, type Reply, startFakeKernel } from "./fake-kernel.ts";
import { createMemoryFileSystem } from "./memory-file-system.ts";

const OP = { LOOKUP: 1, GETATTR: 3, SETATTR: 4, STATFS: 17, GETXATTR: 22, LISTXATTR: 23, OPENDIR: 27, ACCESS: 34 };
const STATX = 52;
const GETATTR_BODY: Part[] = [0, 0, 0n];
const ROOT = kernelNodeId(1);
const NOTHING = { names: [], listings: [], inodes: [] };
const ROWS: KnownRows = { kernelNodeIds: (after) => (after < ROOT ? [ROOT] : []), names: () => [] };
const MODE_AT = 16 + 60;
const LONGER_THAN_GATHERING = 100;

/** A mount with what the kernel keeps of its root (fs/fuse/inode.c). A thread asks, and takes the answer in later. */
function mounted() {
  const clock = createVirtualClock();
  const cache = createKernelCache(clock, SILENT);
  const kernel = startFakeKernel({
    fileSystem: createMemoryFileSystem(),
    onRootKnown: () => cache.rootKnown(),
  });
  const root = { mode: 0, version: 1, invalidations: 0 };
  let version = 1;
  cache.use(async (_, messages) => {
    const bytes = Buffer.from(messages);
    for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at)) {
      if (bytes.readBigUInt64LE(at + 16) !== BigInt(ROOT)) continue;
      root.invalidations += 1;
      root.version = ++version;
    }
    return 0;
  }, 45);
  return {
    kernel,
    root,
    ask() {
      const asked = version;
      const id = kernel.send(OP.GETATTR, ROOT, ...GETATTR_BODY);
      return {
        answered: () => kernel.replyTo(id),
        takeIn({ body }: Reply) {
          if (root.version > asked) return;
          root.mode = body.readUInt32LE(MODE_AT) & 0o777;
          root.version = ++version;
        },
      };
    },
    async change(how: "attributes" | "listing" | "everything") {
      if (how === "everything") cache.everything(ROWS);
      else cache.tell({ ...NOTHING, [how === "listing" ? "listings" : "inodes"]: [ROOT] }, ROWS);
      await clock.advance(LONGER_THAN_GATHERING);
    },
    passed: () => clock.advance(LONGER_THAN_GATHERING),
  };
}

const validity = ({ body }: Reply) => body.readBigUInt64LE(0);
const attributes = async (kernel: FakeKernel) => validity(await kernel.call(OP.GETATTR, ROOT, ...GETATTR_BODY));

describe("the first caller is judged by the root's true mode", () => {
  const whens = ["before the question", "before the answer", "before the caller has taken the answer in"] as const;
  const hows = ["attributes", "listing", "everything"] as const;
  it.each(whens.flatMap((when) => hows.map((how) => [when, how] as const)))("a change %s: %s", async (when, how) => {
    const { kernel, root, ask, change, passed } = mounted();
    if (when === whens[0]) await change(how);
    const caller = ask();
    if (when === whens[1]) await change(how);
    const answer = await caller.answered();
    if (when === whens[2]) await change(how);
    caller.takeIn(answer);
    expect([root.mode.toString(8), root.invalidations]).toEqual(["755", 0]);
    // The answer is not to be kept, so the kernel misses nothing until it is told.
    expect(validity(answer)).toBe(0n);
    await kernel.call(OP.LOOKUP, ROOT, "a");
    await passed();
    expect(root.invalidations).toBe(1);
  });
});

describe("that the kernel has the root's attributes", () => {
  it.each<[string, number, Part[]]>([
    ["a name looked up in it", OP.LOOKUP, ["a"]],
    ["its being opened", OP.OPENDIR, [0, 0]],
  ])("is shown by %s: then answers are kept, and changes told at once", async (_, opcode, body) => {
    const { kernel, root, change } = mounted();
    expect(await attributes(kernel)).toBe(0n);
    await kernel.call(opcode, ROOT, ...body);
    expect(await attributes(kernel)).toBe(1n);
    await change("attributes");
    await change("everything");
    expect(root.invalidations).toBe(2);
  });

  it.each<[string, number, number, Part[]]>([
    ["GETATTR", OP.GETATTR, ROOT, GETATTR_BODY],
    ["STATX", STATX, ROOT, [0, 0, 0n, 0, 0xfff]],
    ["SETATTR", OP.SETATTR, ROOT, [1, 0, 0n, Buffer.alloc(52), 0o40700, Buffer.alloc(16)]],
    ["STATFS", OP.STATFS, ROOT, []],
    ["GETXATTR", OP.GETXATTR, ROOT, [0, 0, "user.a"]],
    ["LISTXATTR", OP.LISTXATTR, ROOT, [0, 0]],
    ["ACCESS", OP.ACCESS, ROOT, [1, 0]],
    ["a name looked up in another folder", OP.LOOKUP, 2, ["a"]],
  ])("is not shown by what needs no permission in it: %s", async (_, opcode, nodeid, body) => {
    const { kernel, root, change } = mounted();
    await kernel.call(opcode, nodeid, ...body);
    await change("attributes");
    expect([await attributes(kernel), root.invalidations]).toEqual([0n, 0]);
  });

  it("is told once, and known to a daemon that takes over", async () => {
    let told = 0;
    const onRootKnown = () => {
      told += 1;
    };
    const options = { fileSystem: createMemoryFileSystem(), onRootKnown };
    const first = startFakeKernel(options);
    for (const name of ["a", "b"]) await first.call(OP.LOOKUP, ROOT, name);
    expect(told).toBe(1);
    const second = startFakeKernel({ ...options, init: false, connection: CONNECTION, rootIsKnown: true });
    expect(await attributes(second)).toBe(1n);
    await second.call(OP.LOOKUP, ROOT, "a");
    expect(told).toBe(1);
  });
});
