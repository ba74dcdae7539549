/** What others changed, as it is done once more for who watches; and what who does it is answered. */
import { beforeEach, expect, test } from "vitest";
import { type Caller, EVERYTHING, type FileSystem, type Replays } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { createReplays, withReplays } from "../../../src/engine/remote/index.ts";
import { entryId, type InodeId, inodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { NEW_INODE } from "../../support/new-inode.ts";
import { createBytesWorld, type Parts } from "../support/bytes-world.ts";

const HELPER = 77;
const ROOT_LINEAGE = kernelNodeId(1);

let context: Parts;
let replays: Replays;
let fileSystem: FileSystem;
let folder: Inode;
let begun: number;

beforeEach(async () => {
  ({ context } = await createBytesWorld());
  replays = createReplays(context);
  fileSystem = withReplays(context, createFileSystem(context), replays);
  context.metadata.inodes.update(ROOT_INODE, { listed: 1 });
  folder = make("folder", ROOT_INODE, "folder");
  context.metadata.inodes.update(folder.id, { listed: 1 });
  context.metadata.changed.onTell((changed) => replays.note(changed));
  begun = 0;
  replays.onAny(() => {
    begun += 1;
  });
  replays.by = HELPER;
  watch(folder.id);
});

const watch = (...inodes: InodeId[]) => replays.asking()(new Set(inodes));

function make(kind: "file" | "folder", parent: InodeId, name: string): Inode {
  const { inodes, entries, transaction } = context.metadata;
  return transaction(() => {
    const inode = inodes.create({ kind, ...NEW_INODE });
    entries.create(parent, name, inode.id);
    return inode;
  });
}

function all(): string[] {
  const told: string[] = [];
  for (let one = replays.next(); one !== undefined; one = replays.next()) {
    told.push(`${one.what} ${replays.pathOf(one.folder)}/${one.name}${one.what === "moved" ? ` ${one.to.name}` : ""}`);
  }
  return told;
}

const remove = (name: string, parent = folder.id) => {
  const { entries, transaction } = context.metadata;
  transaction(() => entries.remove(entries.find(parent, name)?.id ?? entryId(0)));
};
const move = (name: string, to: string) => {
  const { entries, transaction } = context.metadata;
  transaction(() => entries.move(entries.find(folder.id, name)?.id ?? entryId(0), folder.id, to));
};
const calledBy = (pid: number): Caller => ({ uid: 0, gid: 0, pid, signal: new AbortController().signal });
const helper = calledBy(HELPER);
const other = calledBy(1);
const codeOf = (work: Promise<unknown>) =>
  work.then(
    (value) => value,
    (error: unknown) => (error as { code: string }).code,
  );

test("names that come, go and move, contents and attributes, as they are by then", () => {
  const a = make("file", folder.id, "a");
  make("folder", folder.id, "b");
  expect(begun).toBeGreaterThan(0);
  expect(all()).toEqual(["made folder/a", "closed folder/a", "made folder/b"]);
  move("a", "c");
  context.metadata.inodes.update(a.id, { attributes: { mode: 0o600 } });
  expect(all()).toEqual(["moved folder/a c", "attributes folder/c"]);
  context.metadata.inodes.replaceKernelNodeId(a.id, { size: 7 });
  // Who watches the file may know it by either.
  expect(all()).toEqual(["written folder/c", "closed folder/c"]);
  watch(folder.id, a.id);
  context.metadata.inodes.replaceKernelNodeId(a.id, { size: 8 });
  const one = ["written folder/c", "closed folder/c"];
  expect(all()).toEqual([...one, ...one, ...one]);
  remove("c");
  expect(all()).toEqual(["gone folder/c"]);
});

test("a name whose inode turns out to be another's file was not written; one that has other content was", () => {
  const { inodes, entries, transaction } = context.metadata;
  const rename = (name: string, hash: string, group: string | null) => {
    const [older, younger] = [make("file", folder.id, `old ${name}`), make("file", folder.id, name)];
    inodes.update(older.id, { hash: "one", linkGroup: "g" });
    inodes.update(younger.id, { hash, linkGroup: group });
    all();
    transaction(() => entries.setInode(entries.find(folder.id, name)?.id ?? entryId(0), older.id));
    watch(folder.id);
    return all();
  };
  expect(rename("same", "one", "g")).toEqual(["attributes folder/old same", "attributes folder/same"]);
  for (const [name, hash, group] of [
    ["a", "two", "g"],
    ["b", "one", "h"],
    ["c", "one", null],
  ] as const) {
    expect(rename(name, hash, group)).toContain(`written folder/${name}`);
  }
});

test("what is over before its turn, was done by a program here, or nobody watches, is not done again", () => {
  make("file", folder.id, "a");
  remove("a");
  context.metadata.changed.heard(() => make("file", folder.id, "own"));
  make("file", ROOT_INODE, "elsewhere");
  watch(folder.id);
  expect(all()).toEqual([]);
  // Another one in its place is what a rename over it would be.
  remove("own");
  make("file", folder.id, "own");
  expect(all()).toEqual(["written folder/own", "closed folder/own"]);
  watch();
  remove("own");
  expect(all()).toEqual([]);
});

test("a folder that fills for the first time is nobody's change, and is listed once it is watched", () => {
  const { id } = make("folder", folder.id, "new");
  all();
  make("file", id, "found");
  watch(id);
  expect(all()).toEqual([]);
  begun = 0;
  replays.mayBeWatched(id);
  replays.mayBeWatched(folder.id);
  expect([begun, replays.isAny]).toEqual([1, true]);
});

test("what was moved by two commits has not gone", () => {
  const inode = make("file", folder.id, "a");
  all();
  const { entries, transaction } = context.metadata;
  transaction(() => entries.create(folder.id, "b", inode.id));
  remove("a");
  expect(all()).toEqual(["made folder/b", "closed folder/b", "moved folder/a b"]);
});

test("a program, which may be started at any moment, is not opened for writing", () => {
  const inode = make("file", folder.id, "a");
  all();
  context.metadata.inodes.update(inode.id, { attributes: { mode: 0o755 } });
  expect(all()).toEqual(["attributes folder/a"]);
  context.metadata.inodes.replaceKernelNodeId(inode.id, {});
  expect(all()).toEqual(["written folder/a"]);
});

test("of more changes than anybody would hear of some are left out", () => {
  for (let index = 0; index < 10_050; index += 1) make("folder", folder.id, `${index}`);
  expect(all()).toHaveLength(10_000);
});

test("who makes it is shown what was before, and then what is; others what is", async () => {
  const inode = make("file", folder.id, "a");
  replays.next();
  expect(await codeOf(fileSystem.lookup(helper, folder.kernelNodeId, "a"))).toBe("ENOENT");
  const made = await fileSystem.mknod(helper, folder.kernelNodeId, "a", "file", 0o600, 0);
  expect(made).toMatchObject({ kernelNodeId: inode.kernelNodeId, stat: { inode: inode.id } });
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "a")).toMatchObject({ kernelNodeId: inode.kernelNodeId });
});

test("what has gone is there for who removes it, once; what is there again is not removed", async () => {
  make("file", folder.id, "a");
  all();
  remove("a");
  replays.next();
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "a")).toMatchObject({ stat: { kind: "file" } });
  expect(await codeOf(fileSystem.lookup(other, folder.kernelNodeId, "a"))).toBe("ENOENT");
  const again = make("file", folder.id, "a");
  expect(await codeOf(fileSystem.unlink(helper, folder.kernelNodeId, "a"))).toBe("EIO");
  expect(context.metadata.entries.find(folder.id, "a")?.inode).toBe(again.id);
  remove("a");
  expect(await codeOf(fileSystem.unlink(helper, folder.kernelNodeId, "a"))).toBeUndefined();
});

test("a move is one for who makes it while it is what others did", async () => {
  const inode = make("file", folder.id, "a");
  all();
  move("a", "b");
  replays.next();
  const place = (name: string) => ({ parent: folder.kernelNodeId, name });
  const flags = { noReplace: true, exchange: false };
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "a")).toMatchObject({ stat: { inode: inode.id } });
  expect(await codeOf(fileSystem.lookup(helper, folder.kernelNodeId, "b"))).toBe("ENOENT");
  expect(await codeOf(fileSystem.rename(helper, place("a"), place("c"), flags))).toBe("EIO");
  expect(await codeOf(fileSystem.rename(helper, place("a"), place("b"), flags))).toBeUndefined();
  expect(context.metadata.entries.find(folder.id, "b")?.inode).toBe(inode.id);
});

test.each(["by", "formerly"] as const)(
  "what is not the change, from who replays (%s), changes nothing",
  async (who) => {
    const { inodes } = context.metadata;
    const inode = make("file", folder.id, "a");
    all();
    remove("a");
    make("file", folder.id, "a");
    all();
    const before = JSON.stringify([
      inodes.get(inode.id),
      inodes.get(folder.id),
      context.metadata.entries.list(inodeId(1), 0, 99),
    ]);
    if (who === "formerly") {
      replays.by = undefined;
      replays.formerly.add(HELPER);
    }
    const { kernelNodeId } = folder;
    const there = { parent: kernelNodeId, name: "a" };
    const flags = { read: false, write: true, append: false, truncate: true, exclusive: false };
    const calls = [
      fileSystem.unlink(helper, kernelNodeId, "a"),
      fileSystem.rmdir(helper, kernelNodeId, "a"),
      fileSystem.mkdir(helper, kernelNodeId, "new", 0o700),
      fileSystem.mknod(helper, kernelNodeId, "new", "file", 0o600, 0),
      fileSystem.symlink(helper, kernelNodeId, "new", "?"),
      fileSystem.create(helper, kernelNodeId, "new", 0o600, flags),
      fileSystem.link(helper, inode.kernelNodeId, kernelNodeId, "new"),
      fileSystem.rename(helper, there, { parent: ROOT_LINEAGE, name: "b" }, { noReplace: true, exchange: false }),
      fileSystem.setattr(helper, kernelNodeId, { size: 0 }),
      fileSystem.setattr(helper, kernelNodeId, { mode: 0 }),
      fileSystem.open(helper, inode.kernelNodeId, flags),
      fileSystem.setxattr(helper, kernelNodeId, "user.a", Buffer.from("a"), { create: false, replace: false }),
      fileSystem.removexattr(helper, kernelNodeId, "user.a"),
    ];
    expect(await Promise.all(calls.map(codeOf))).toEqual(calls.map(() => "EIO"));

    const after = JSON.stringify([
      inodes.get(inode.id),
      inodes.get(folder.id),
      context.metadata.entries.list(inodeId(1), 0, 99),
    ]);
    expect(after).toBe(before);
  },
);

test("a name that the kernel was told of as it is, is not shown as absent to anybody again", async () => {
  const inode = make("folder", folder.id, "a");
  replays.next();
  expect(await fileSystem.lookup(other, folder.kernelNodeId, "a")).toMatchObject({ kernelNodeId: inode.kernelNodeId });
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "a")).toMatchObject({ kernelNodeId: inode.kernelNodeId });
  expect(await codeOf(fileSystem.mkdir(helper, folder.kernelNodeId, "a", 0o700))).toBe("EIO");
  replays.failed(false);
  expect(all()).toEqual(["attributes folder/a"]);
  make("folder", folder.id, "b");
  await fileSystem.lookup(other, folder.kernelNodeId, "b");
  expect(all()).toEqual(["attributes folder/b"]);
  move("b", "c");
  await fileSystem.lookup(other, folder.kernelNodeId, "c");
  expect(all()).toEqual(["gone folder/b", "attributes folder/c"]);
  make("file", folder.id, "d");
  all();
  move("d", "e");
  await fileSystem.lookup(other, folder.kernelNodeId, "e");
  // By the number of what is elsewhere now, which the kernel has where it does not ask, it is not removed.
  expect(replays.next()).toMatchObject({ what: "gone", name: "d" });
  expect(await codeOf(fileSystem.unlink(helper, folder.kernelNodeId, "d"))).toBe("EIO");
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "d")).toMatchObject({ stat: { kind: "file" } });
  expect(await codeOf(fileSystem.unlink(helper, folder.kernelNodeId, "d"))).toBeUndefined();
});

/** A kernel that can be made to ask for a name again. */
function askingAgain(): string[] {
  const asked: string[] = [];
  const expireNow = async (parent: number, name: string) => void asked.push(`${parent}/${name}`);
  const { kernel, metadata } = context;
  Object.assign(kernel, { cache: { ...kernel.cache, expiresNames: true, expireNow } });
  replays = createReplays(context);
  fileSystem = withReplays(context, createFileSystem(context), replays);
  metadata.changed.onTell((changed) => replays.note(changed));
  replays.onAny(() => {});
  replays.by = HELPER;
  watch(folder.id);
  return asked;
}

test("a file that others were shown before is made once more all the same: the kernel is to ask for it, and does", async () => {
  const asked = askingAgain();
  const inode = make("file", folder.id, "a");
  await fileSystem.lookup(other, folder.kernelNodeId, "a");
  expect(replays.next()).toMatchObject({ what: "made", name: "a" });
  // The kernel would not ask yet.
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "a")).toMatchObject({ kernelNodeId: inode.kernelNodeId });
  await replays.prepare(() => false);
  expect(asked).toEqual([`${folder.kernelNodeId}/a`]);
  // What others are told meanwhile does not count for longer than that.
  expect(await fileSystem.lookup(other, folder.kernelNodeId, "a")).toMatchObject({
    entryValidMs: 0,
    stat: { inode: inode.id },
  });
  expect(await codeOf(fileSystem.lookup(helper, folder.kernelNodeId, "a"))).toBe("ENOENT");
  const made = await fileSystem.mknod(helper, folder.kernelNodeId, "a", "file", 0o600, 0);
  expect(made).toMatchObject({ kernelNodeId: inode.kernelNodeId });
  expect(made.entryValidMs).toBeGreaterThan(0);
  const { entryValidMs } = (await fileSystem.lookup(other, folder.kernelNodeId, "a")) as { entryValidMs: number };
  expect(entryValidMs).toBeGreaterThan(0);
  expect(all()).toEqual(["closed folder/a"]);
});

test("where the kernel was told again before it asked, it is made to ask once more; then it is told as what it can be", async () => {
  const asked = askingAgain();
  make("file", folder.id, "a");
  await fileSystem.lookup(other, folder.kernelNodeId, "a");
  for (const again of [true, false]) {
    expect(replays.next()).toMatchObject({ what: "made" });
    await replays.prepare(() => false);
    replays.failed(false);
    expect(asked).toHaveLength(again ? 1 : 2);
  }
  expect(all()).toEqual(["written folder/a", "closed folder/a"]);
});

test("what somebody has mounted something over, or writes to, is taken from nobody", async () => {
  const asked = askingAgain();
  const covered = make("folder", folder.id, "covered");
  await fileSystem.lookup(other, folder.kernelNodeId, "covered");
  replays.next();
  await replays.prepare(() => true);
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "covered")).toMatchObject({
    kernelNodeId: covered.kernelNodeId,
  });
  all();
  const { id, kernelNodeId } = make("file", folder.id, "written");
  await fileSystem.lookup(other, folder.kernelNodeId, "written");
  context.metadata.inodes.update(id, { attributes: { mode: 0o600 } });
  const writing = { read: false, write: true, append: false, truncate: false, exclusive: false };
  const { handle } = await fileSystem.open(other, kernelNodeId, writing);
  expect(all()).not.toContain("made folder/written");
  await fileSystem.release(handle);
  expect(asked).toEqual([]);
});

test("a file that others were shown, where the kernel asks for no name again, is heard of as written", async () => {
  make("file", folder.id, "a");
  await fileSystem.lookup(other, folder.kernelNodeId, "a");
  expect(all()).toEqual(["written folder/a", "closed folder/a"]);
});

test("moves in a row are one, and one that is over is what is left of it", () => {
  make("file", folder.id, "a");
  all();
  move("a", "b");
  move("b", "c");
  expect(all()).toEqual(["moved folder/a c"]);
  move("c", "d");
  remove("d");
  expect(all()).toEqual(["gone folder/c"]);
});

test("names that no program could use are none", () => {
  const { inodes, entries } = context.metadata;
  const inode = inodes.create({ kind: "file", ...NEW_INODE });
  entries.create(folder.id, "//node", inode.id);
  inodes.replaceKernelNodeId(inode.id, {});
  const hidden = make("folder", folder.id, "/7");
  inodes.update(hidden.id, { listed: 1 });
  make("file", hidden.id, "below");
  watch(folder.id, hidden.id, inode.id);
  expect(all()).toEqual(["made undefined/below", "closed undefined/below"]);
});

test("while the mount is being taken off nothing is begun", () => {
  const resume = replays.pause();
  make("file", folder.id, "a");
  expect([replays.isAny, all()]).toEqual([false, []]);
  resume();
  expect(all()).toEqual(["made folder/a", "closed folder/a"]);
});

test("the kernel gives back an old number that it was shown once more, and is taken to know it still", async () => {
  const { inodes } = context.metadata;
  const inode = make("file", folder.id, "a");
  all();
  inodes.replaceKernelNodeId(inode.id, {});
  watch(folder.id, inode.id);
  replays.next();
  expect(await fileSystem.lookup(helper, folder.kernelNodeId, "a")).toMatchObject({ kernelNodeId: inode.kernelNodeId });
  fileSystem.forget([{ kernelNodeId: inode.kernelNodeId, count: 1 }]);
  expect(inodes.kernelNodeIds(inode.id)).toContain(inode.kernelNodeId);
  fileSystem.forget([{ kernelNodeId: inode.kernelNodeId, count: 1 }]);
  expect(inodes.kernelNodeIds(inode.id)).not.toContain(inode.kernelNodeId);
});

test("a name that a program here made since is not made once more, also where it came and went before that", async () => {
  make("folder", folder.id, "a");
  remove("a");
  await fileSystem.mkdir(other, folder.kernelNodeId, "a", 0o700);
  expect(all()).toEqual([]);
  for (const name of ["b", "c"]) make("folder", folder.id, name);
  await fileSystem.rename(
    other,
    { parent: folder.kernelNodeId, name: "a" },
    { parent: folder.kernelNodeId, name: "d" },
    PLAIN,
  );
  move("b", "e");
  await fileSystem.rename(
    other,
    { parent: folder.kernelNodeId, name: "e" },
    { parent: folder.kernelNodeId, name: "f" },
    PLAIN,
  );
  expect(all()).not.toContain("moved folder/b e");
});

test("what is in its place no more is shown there to nobody", async () => {
  const inode = make("folder", folder.id, "a");
  all();
  move("a", "b");
  replays.next();
  await fileSystem.rename(
    other,
    { parent: folder.kernelNodeId, name: "b" },
    { parent: folder.kernelNodeId, name: "c" },
    PLAIN,
  );
  expect(await codeOf(fileSystem.lookup(helper, folder.kernelNodeId, "a"))).toBe("ENOENT");
  all();
  context.metadata.inodes.update(inode.id, { attributes: { mode: 0o700 } });
  const file = make("file", folder.id, "d");
  all();
  context.metadata.inodes.update(file.id, { attributes: { mode: 0o600 } });
  replays.next();
  await fileSystem.rename(
    other,
    { parent: folder.kernelNodeId, name: "d" },
    { parent: folder.kernelNodeId, name: "e" },
    PLAIN,
  );
  expect(await codeOf(fileSystem.lookup(helper, folder.kernelNodeId, "d"))).toBe("ENOENT");
});

test("of who began to watch before a change nothing is left out, though it was asked for before that", () => {
  watch();
  const tell = replays.asking();
  make("folder", folder.id, "a");
  tell(new Set());
  expect([all(), replays.isAny]).toEqual([[], true]);
  watch(folder.id);
  expect(all()).toEqual(["made folder/a"]);
});

const PLAIN = { noReplace: false, exchange: false };

test("nothing that a program here does to a file, whatever the kernel has to be told of it", async () => {
  const { context: here, clock } = await createBytesWorld();
  const own = createReplays(here);
  here.metadata.inodes.update(ROOT_INODE, { listed: 1 });
  const told: number[][] = [];
  here.metadata.changed.onTell((changed) => {
    told.push([...changed.inodes]);
    own.note(changed);
  });
  own.onAny(() => {});
  own.asking()(new Set([EVERYTHING]));
  const files = createFileSystem(here);
  const flags = { read: true, write: true, append: false, truncate: false, exclusive: true, direct: false };
  const { kernelNodeId, handle } = await files.create(other, ROOT_LINEAGE, "own", 0o644, flags);
  const write = () => files.write(other, handle, 0, Buffer.from("own"), { killPrivileges: false });
  await write();
  await files.getattr(other, kernelNodeId);
  await clock.advance(1);
  // Another one may have been made through a mapping.
  await write();
  await files.flush(other, handle);
  expect(told.flat()).toContain(here.metadata.inodes.ofKernelNodeId(kernelNodeId)?.id);
  expect(own.next()).toBe(undefined);
});

test("what a program here does to a file that somebody watches by an earlier kernel node id: the kernel tells him nothing", () => {
  const { inodes, changed } = context.metadata;
  const { id } = make("file", folder.id, "a");
  watch(folder.id, id);
  all();
  changed.ours(() => inodes.update(id, { ctime: "1.000000000" }));
  expect(all()).toEqual([]);
  inodes.replaceKernelNodeId(id, { size: 1 });
  all();
  changed.ours(() => inodes.update(id, { ctime: "2.000000000" }));
  expect(all()).toEqual(["attributes folder/a", "attributes folder/a"]);
});
