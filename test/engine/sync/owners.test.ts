/** Whose a node is: what is kept of whoever made it or was given it, and whom programs of another machine see. */
import { expect, test } from "vitest";
import type { Attributes } from "../../../src/contract/attributes.ts";
import type { Accounts, KernelNodeId, SetAttributes } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { mergeAttributes } from "../../../src/engine/sync/merge-attributes.ts";
import { inodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { CALLER, createBytesWorld, pattern, withParts } from "../support/bytes-world.ts";

const ROOT = kernelNodeId(1);
const MOUNTER = 1000;
const NOBODY = 65534;
const NEW_FILE = { read: true, write: true, append: false, truncate: false, exclusive: true };

/** A machine where these users are also the groups. */
function machine(known: Record<string, number>): Accounts {
  return {
    numberOf: async (_, name) => known[name],
    nameOf: async (_, number) => Object.keys(known).find((name) => known[name] === number),
  };
}

const BROKEN: Accounts = {
  numberOf: () => Promise.reject(new Error("no answer")),
  nameOf: () => Promise.reject(new Error("no answer")),
};

async function begin(owners: "real" | "mine", accounts: Accounts) {
  const world = await createBytesWorld({ owners });
  const context = withParts(world.context, { accounts });
  const { inodes } = context.metadata;
  inodes.update(ROOT_INODE, { listed: 0 });
  const as = (uid: number, gid = uid) => ({ ...CALLER, uid, gid });
  const kept = (kernelNodeId: KernelNodeId) => {
    const { uid, uname, gid, gname, mode } = inodes.ofKernelNodeId(kernelNodeId)?.attributes ?? {};
    return { uid, uname, gid, gname, mode };
  };
  return {
    context,
    as,
    kept,
    file: async (uid: number, name: string, parent = ROOT) =>
      (await createFileSystem(context).create(as(uid), parent, name, 0o644, NEW_FILE)).kernelNodeId,
    folder: async (uid: number, name: string, mode: number, parent = ROOT) =>
      (await createFileSystem(context).mkdir(as(uid), parent, name, mode)).kernelNodeId,
    set: async (kernelNodeId: KernelNodeId, change: SetAttributes) => {
      const { stat } = await createFileSystem(context).setattr(as(0), kernelNodeId, change);
      return `${stat.uid}:${stat.gid}`;
    },
    shown: async (attributes: Attributes) => {
      const { kernelNodeId } = world.addRemote(pattern(1), { attributes });
      const { uid, gid } = (await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat;
      return `${uid}:${gid}`;
    },
  };
}

const HERE = machine({ root: 0, alice: 1001, staff: 50, mounter: MOUNTER, nobody: NOBODY });

test("who makes a node owns it, with the names of this machine where it has them", async () => {
  const { context, as, file, folder, kept } = await begin("real", HERE);
  expect(kept(await file(1001, "f"))).toEqual({ uid: 1001, uname: "alice", gid: 1001, gname: "alice", mode: 0o644 });
  expect(kept(await folder(0, "d", 0o755))).toMatchObject({ uid: 0, uname: "root", gid: 0, gname: "root" });
  const link = await createFileSystem(context).symlink(as(77, 50), ROOT, "l", "f");
  expect(kept(link.kernelNodeId)).toMatchObject({ uid: 77, uname: undefined, gid: 50, gname: "staff" });
  expect(link.stat).toMatchObject({ uid: 77, gid: 50 });
});

test("what is made in a set-group-id folder has its group, sub-folders the bit too", async () => {
  const { file, folder, set, kept } = await begin("real", HERE);
  const shared = await folder(1001, "shared", 0o2775);
  await set(shared, { gid: 50 });
  const group = { uid: 0, uname: "root", gid: 50, gname: "staff" };
  expect(kept(await file(0, "f", shared))).toMatchObject(group);
  const below = await folder(0, "d", 0o755, shared);
  expect(kept(below)).toEqual({ ...group, mode: 0o2755 });
  expect(kept(await file(0, "f", below))).toMatchObject(group);
  // A group that its attributes do not name is the one of whoever mounts, of what is made in it too.
  const { id, attributes } = await rootWithBit();
  expect([id, attributes.gid, attributes.gname]).toEqual([ROOT_INODE, undefined, undefined]);

  async function rootWithBit() {
    const { context, file: inRoot, kept: keptThere } = await begin("real", HERE);
    const root = context.metadata.inodes.update(ROOT_INODE, { attributes: { mode: 0o2777 } });
    expect(keptThere(await inRoot(0, "f"))).toEqual({ uid: 0, uname: "root", gid: undefined, mode: 0o644 });
    return root;
  }
});

test("an owner that is given takes number and name together, and none that is there already is given again", async () => {
  const { context, file, set, kept } = await begin("real", HERE);
  const kernelNodeId = await file(1001, "f");
  expect(await set(kernelNodeId, { uid: 77, gid: 50 })).toBe("77:50");
  // The name of the former owner would go before the number of this one.
  expect(kept(kernelNodeId)).toMatchObject({ uid: 77, uname: undefined, gid: 50, gname: "staff" });
  await set(kernelNodeId, { uid: 1001 });
  expect(kept(kernelNodeId)).toMatchObject({ uid: 1001, uname: "alice", gid: 50, gname: "staff" });
  const inode = () => context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  const before = inode();
  context.metadata.inodes.update(before?.id ?? inodeId(0), { attributes: { ...before?.attributes, uid: 4711 } });
  // By the name it is alice's, whatever number that has elsewhere.
  expect(await set(kernelNodeId, { uid: 1001 })).toBe("1001:50");
  expect(kept(kernelNodeId).uid).toBe(4711);
});

test("set-id bits go with the owner, but from no folder, and set-group-id stays where it locks", async () => {
  const { file, folder, set, kept } = await begin("real", HERE);
  const kernelNodeId = await file(0, "f");
  await set(kernelNodeId, { mode: 0o6755 });
  await set(kernelNodeId, { uid: 1001 });
  expect(kept(kernelNodeId).mode).toBe(0o755);
  await set(kernelNodeId, { mode: 0o6744 });
  await set(kernelNodeId, { gid: 50 });
  expect(kept(kernelNodeId).mode).toBe(0o2744);
  const d = await folder(0, "d", 0o755);
  await set(d, { mode: 0o6755 });
  await set(d, { uid: 1001, gid: 50 });
  expect(kept(d).mode).toBe(0o6755);
});

test.each([
  ["no owner: the mounter", {}, "1000:1000"],
  ["no name: the number", { uid: 4711, gid: 0 }, "4711:0"],
  ["a name this machine knows", { uid: 4711, uname: "alice", gid: 4711, gname: "staff" }, "1001:50"],
  ["a name it does not know, with a number nobody has here", { uid: 4711, uname: "bob", gid: 4711 }, "4711:4711"],
  ["such a name, with a number of somebody else here", { uid: 1001, uname: "bob", gid: 50, gname: "x" }, "65534:65534"],
  ["a number of root's with another name", { uid: 0, uname: "toor" }, "65534:1000"],
  ["a name alone that is known, and one that is not", { uname: "alice", gname: "x" }, "1001:1000"],
])("%s is shown", async (_, attributes, owner) => {
  const real = await begin("real", HERE);
  expect(await real.shown(attributes)).toBe(owner);
  const mine = await begin("mine", HERE);
  expect(await mine.shown(attributes)).toBe("1000:1000");
});

test("while accounts cannot be looked up, what has a name is nobody's and what is made has none", async () => {
  const { file, kept, shown } = await begin("real", BROKEN);
  expect(await shown({ uid: 1001, uname: "alice", gid: 50 })).toBe("65534:50");
  expect(kept(await file(1001, "f"))).toMatchObject({ uid: 1001, uname: undefined });
});

test("a mount that shows its own keeps an owner that is given, and gives none", async () => {
  const { file, set, kept } = await begin("mine", HERE);
  const kernelNodeId = await file(1001, "f");
  expect(kept(kernelNodeId)).toMatchObject({ uid: undefined, uname: undefined, gid: undefined, gname: undefined });
  // It is shown as that already.
  await set(kernelNodeId, { uid: MOUNTER, gid: MOUNTER });
  expect(kept(kernelNodeId)).toMatchObject({ uid: undefined, gid: undefined });
  expect(await set(kernelNodeId, { uid: 1001 })).toBe("1000:1000");
  expect(kept(kernelNodeId)).toMatchObject({ uid: 1001, uname: "alice", gid: undefined });
});

test("owners changed on both sides are one side's, number and name", () => {
  const merge = (base: Attributes, local: Attributes, remote: Attributes) =>
    mergeAttributes(base, local, remote, false);
  const base = { uid: 0, uname: "root", mode: 0o644 };
  // The number of one and the name of the other would be a third one's.
  expect(merge(base, { uid: 77, mode: 0o644 }, { uid: 5, uname: "bob", mode: 0o600 })).toEqual({
    uid: 77,
    mode: 0o600,
  });
  expect(merge({}, { uid: 77 }, { uid: 5, uname: "bob" })).toEqual({ uid: 77 });
  expect(merge({}, {}, { uid: 5, uname: "bob" })).toEqual({ uid: 5, uname: "bob" });
  expect(merge(base, { ...base, gid: 50, gname: "staff" }, { ...base, uid: 5, uname: "bob" })).toEqual({
    ...{ uid: 5, uname: "bob", mode: 0o644 },
    ...{ gid: 50, gname: "staff" },
  });
});
