/** Files that are kept on the disk and files that go: the cache limit, forgotten kernel node ids, and what a crash left behind. */
import { expect, test } from "vitest";
import { evict } from "../../../src/engine/files/evict.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { type InodeId, inodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern } from "../support/bytes-world.ts";

const KIB = 1024;
const TEXT = Buffer.from("written here");

/** Lineages that have a file. */
async function filesOf(world: BytesWorld): Promise<number[]> {
  const kernelNodeIds: number[] = [];
  for await (const kernelNodeId of world.context.paths.cacheFiles()) kernelNodeIds.push(kernelNodeId);
  return kernelNodeIds;
}

async function cached(world: BytesWorld, size = 100 * KIB) {
  const inode = world.addRemote(pattern(size));
  await world.readAll(inode);
  await world.clock.advance(10);
  return inode;
}

test("over the limit, what was not used for longest goes, and comes again when read", async () => {
  const world = await createBytesWorld({ cacheLimit: 350 * KIB });
  const inodes = [];
  for (let count = 0; count < 4; count += 1) inodes.push(await cached(world));
  const [oldest, ...rest] = inodes;
  if (oldest === undefined) throw new Error("no inode");
  await world.clock.advance(2000);
  expect(await filesOf(world)).toEqual(rest.map((inode) => inode.kernelNodeId));
  expect(world.context.metadata.cacheFiles.totalBytes()).toBeLessThanOrEqual(350 * KIB);
  expect(Buffer.compare(await world.readAll(oldest), pattern(100 * KIB))).toBe(0);
});

test("what is dirty, open, or being sent never goes", async () => {
  const world = await createBytesWorld({ cacheLimit: 0 });
  const { inode: dirty, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await world.close(handle);
  const open = world.addRemote(pattern(1000));
  const reader = await world.open(open);
  await world.read(reader, 0, 1000);
  const grown = await cached(world);
  const writer = await world.open(grown, { write: true });
  await world.write(writer, 0, TEXT);
  await world.close(writer);
  const sent = await written(world);
  await world.context.snapshots.take(sent, CALLER.signal);
  world.context.metadata.inodes.update(sent, { content: "clean", originNode: "n", originVersion: "v" });
  world.context.metadata.cacheFiles.update(world.inode(sent).kernelNodeId, { originNode: "n", originVersion: "v" });
  await cached(world);
  await world.clock.advance(5000);
  const kept = [dirty, open, grown, world.inode(sent)].map((inode) => inode.kernelNodeId);
  expect((await filesOf(world)).sort()).toEqual(kept.sort());
  expect(Buffer.from(await world.readAll(dirty))).toEqual(TEXT);
});

async function written(world: BytesWorld): Promise<InodeId> {
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await world.close(handle);
  return inode.id;
}

test("opened for writing while it is evicted, a file loses nothing", async () => {
  for (let turns = 0; turns < 60; turns += 3) {
    const world = await createBytesWorld({ cacheLimit: 0 }, { turns: () => 6 });
    const inode = world.addRemote(pattern(1000));
    await world.readAll(inode);
    const evicting = evict(world.context);
    for (let turn = 0; turn < turns; turn += 1) await undefined;
    const handle = await world.open(world.inode(inode.id), { write: true });
    await world.write(handle, 100, TEXT);
    await evicting;
    await world.close(handle);
    const expected = Buffer.from(pattern(1000));
    expected.set(TEXT, 100);
    expect(Buffer.compare(await world.readAll(inode), expected), `after ${turns} turns`).toBe(0);
  }
});

test("a crash while evicting leaves a file that comes again", async () => {
  for (let turns = 0; turns < 40; turns += 3) {
    const world = await createBytesWorld({ cacheLimit: 0 }, { turns: () => 6 });
    const inode = world.addRemote(pattern(1000));
    await world.readAll(inode);
    evict(world.context).catch(() => {});
    for (let turn = 0; turn < turns; turn += 1) await undefined;
    const next = world.crash();
    await next.recover();
    expect(Buffer.compare(await next.readAll(inode), pattern(1000)), `after ${turns} turns`).toBe(0);
    expect(next.complaints).toEqual([]);
  }
});

test("unlinked while open: readable until closed, and gone once the kernel has forgotten it too", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  const { metadata } = world.context;
  for (const entry of metadata.entries.ofInode(inode.id)) {
    const row = metadata.nodes.ofEntry(entry.id);
    if (row !== undefined) metadata.nodes.remove(row.id);
    metadata.entries.remove(entry.id);
  }
  world.context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
  world.context.orphans.dropForgotten();
  expect(Buffer.from(await world.read(handle, 0, 100))).toEqual(TEXT);
  await world.close(handle);
  await world.clock.settle();
  expect(metadata.inodes.get(inode.id)).toBeUndefined();
  expect(await filesOf(world)).toEqual([]);
});

test("a superseded kernel node id is read by whom it was open for, and goes when forgotten", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(3000 * KIB));
  const handle = await world.open(inode);
  await world.read(handle, 0, 10);
  const next = world.context.metadata.inodes.replaceKernelNodeId(inode.id, {
    originVersion: "newer",
    size: 5,
    hash: null,
  });
  world.gateway.versions.set("newer", Buffer.from("newer"));
  expect(Buffer.from(await world.read(handle, 2500 * KIB, 10))).toEqual(
    Buffer.from(pattern(3000 * KIB).subarray(2500 * KIB, 2500 * KIB + 10)),
  );
  expect(Buffer.from(await world.readAll(world.inode(inode.id))).length).toBe(5);
  await world.close(handle);
  expect(await filesOf(world)).toContain(inode.kernelNodeId);
  world.context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
  world.context.orphans.dropForgotten();
  await world.clock.settle();
  expect(await filesOf(world)).toEqual([next.kernelNodeId]);
});

test("after a crash: superseded ids and orphans go, unknown files are quarantined, empty ones removed", async () => {
  const world = await createBytesWorld();
  const inode = await cached(world);
  world.context.metadata.inodes.replaceKernelNodeId(inode.id, {});
  const { inode: nameless, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  const { metadata, paths } = world.context;
  for (const entry of metadata.entries.ofInode(nameless.id)) {
    const row = metadata.nodes.ofEntry(entry.id);
    if (row !== undefined) metadata.nodes.remove(row.id);
    metadata.entries.remove(entry.id);
  }
  for (const [id, bytes] of [
    [kernelNodeId(700), TEXT],
    [kernelNodeId(701), new Uint8Array()],
  ] as const) {
    const file = await world.files.open(paths.cacheFile(id), "w+");
    await file.write(bytes, 0);
    await file.close();
  }
  const next = world.crash();
  await next.recover();
  expect(await filesOf(next)).toEqual([]);
  expect(next.context.metadata.inodes.get(nameless.id)).toBeUndefined();
  expect(await next.files.list("/state/quarantine")).toEqual(["live-700"]);
});

/** The machine goes down, and comes up again. */
async function powerLoss(world: BytesWorld): Promise<BytesWorld> {
  const next = world.crash({ boot: "next" });
  next.context.metadata.settings.set("boot", "boot");
  await next.recover();
  return next;
}

test("after the machine went down, clean bytes are looked at before they are used", async () => {
  const world = await createBytesWorld();
  const whole = await cached(world);
  const torn = await cached(world);
  const dirty = await written(world);
  const file = await world.files.open(world.context.paths.cacheFile(torn.kernelNodeId), "r+");
  await file.write(new Uint8Array(4096), 0);
  await file.close();
  const before = world.gateway.calls.length;
  const next = await powerLoss(world);
  expect(Buffer.compare(await next.readAll(whole), pattern(100 * KIB))).toBe(0);
  expect(next.gateway.calls.length).toBe(before);
  expect(Buffer.compare(await next.readAll(torn), pattern(100 * KIB))).toBe(0);
  expect(next.gateway.calls.length).toBe(before + 1);
  // New, and so over no head.
  expect(Buffer.from(await next.readAll(next.inode(dirty)))).toEqual(TEXT);
});

/** Names in the root, with what they show. */
async function shown(world: BytesWorld): Promise<Record<string, string>> {
  const { entries, inodes } = world.context.metadata;
  const found: Record<string, string> = {};
  for (const { id, name, inode } of entries.list(inodeId(1), 0, 100)) {
    const of = inodes.get(inode);
    if (id > 15 && of !== undefined) found[name] = Buffer.from(await world.readAll(of)).toString();
  }
  return found;
}

test("content that was never synced goes on beside the head after power loss, synced content stays", async () => {
  for (const how of ["never", "as it is", "and written since"] as const) {
    const world = await createBytesWorld();
    const inode = world.addRemote(Buffer.from("the head"), { name: "a.txt" });
    const handle = await world.open(inode, { write: true });
    await world.write(handle, 0, Buffer.from("changed!"));
    if (how !== "never") await createFileSystem(world.context).fsync(CALLER, handle, false);
    if (how === "and written since") await world.write(handle, 0, Buffer.from("half"));
    const next = await powerLoss(world);
    const files = await shown(next);
    const beside = Object.keys(files).filter((name) => name.startsWith("a (recovered, here, "));
    if (how === "never") {
      expect(files["a.txt"]).toBe("the head");
      expect(beside.map((name) => files[name])).toEqual(["changed!"]);
      continue;
    }
    expect([files["a.txt"], beside]).toEqual([how === "as it is" ? "changed!" : "halfged!", []]);
    const snapshot = await next.context.snapshots.take(inode.id, CALLER.signal);
    expect(snapshot).toBe(how === "as it is" ? "taken" : "quarantined");
    if (how === "as it is") continue;
    // A program saves it again: now it is whole.
    const again = await next.open(next.inode(inode.id), { write: true });
    await next.write(again, 0, Buffer.from("saved"));
    await next.close(again);
    expect(await next.context.snapshots.take(inode.id, CALLER.signal)).toBe("taken");
  }
});

test("what goes on beside a linked file after power loss is no content of its other names", async () => {
  const world = await createBytesWorld();
  const head = Buffer.from("the head");
  const link = { group: "group", hash: hashOf(head) };
  const inode = world.addRemote(head, { name: "a.txt", attributes: { mode: 0o600, link } });
  world.context.metadata.inodes.update(inode.id, { attributes: { mode: 0o600 }, linkGroup: "group" });
  const handle = await world.open(inode, { write: true });
  await world.write(handle, 0, Buffer.from("changed!"));
  const { metadata } = (await powerLoss(world)).context;
  const found = metadata.entries.list(inodeId(1), 0, 100).flatMap((entry) => {
    const of = entry.inode === 1 ? undefined : metadata.inodes.get(entry.inode);
    return of === undefined ? [] : [[entry.name.replace(/, .*\)/, ")"), of.linkGroup, of.attributes.link]];
  });
  expect(found.sort()).toEqual([
    ["a (recovered).txt", null, undefined],
    ["a.txt", "group", undefined],
  ]);
});

test("before a byte of synced content changes, the rows that say so are synced", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await createFileSystem(world.context).fsync(CALLER, handle, false);
  const order: string[] = [];
  const context = world.context as { syncRows: () => Promise<void> };
  context.syncRows = async () => void order.push(`rows synced, saying ${world.inode(inode.id).synced}`);
  const cacheFile = world.context.cacheFiles.get(inode.kernelNodeId);
  if (cacheFile === undefined) throw new Error("not open");
  const { file } = cacheFile.disk;
  const { write } = file;
  file.write = (data, at) => write(data, at).then(() => void order.push("written"));
  await world.write(handle, 0, TEXT);
  await world.write(handle, 5, TEXT);
  expect(order).toEqual(["rows synced, saying formerly", "written", "written"]);
});

test("recovery reads no clean file", async () => {
  const world = await createBytesWorld();
  for (let count = 0; count < 50; count += 1) await cached(world, 1000);
  const next = world.crash();
  next.files.fail({ path: /live\/\d+\/\d+$/, code: "EIO", on: ["open", "read", "hash", "stat"], times: 1000 });
  await next.recover();
});

test("opened for writing at the crash and not written, whole or not, a file is clean", async () => {
  const world = await createBytesWorld();
  const whole = await cached(world);
  const partly = world.addRemote(pattern(3000 * KIB));
  for (const inode of [whole, partly]) await world.open(inode, { write: true });
  const next = world.crash();
  await next.recover();
  expect(next.inode(whole.id).content).toBe("clean");
  expect(next.inode(partly.id).content).toBe("clean");
});

test("a file the disk cannot read counts as changed, and keeps nobody from starting", async () => {
  const world = await createBytesWorld();
  const [bad, good] = [await cached(world), await cached(world)];
  for (const inode of [bad, good]) await world.open(inode, { write: true });
  const next = world.crash();
  const path = new RegExp(`^${next.context.paths.cacheFile(bad.kernelNodeId)}$`);
  next.files.fail({ path, code: "EIO", on: ["hash", "read"], times: 1000 });
  await next.recover();
  expect(next.inode(bad.id)).toMatchObject({ content: "dirty", hash: null });
  expect(next.inode(good.id).content).toBe("clean");
  expect(next.complaints).toEqual([expect.stringContaining("a file that was open cannot be read: EIO")]);
});

test("opened for writing and changed past us before the crash, a file is dirty", async () => {
  const world = await createBytesWorld();
  const inode = await cached(world);
  await world.open(inode, { write: true });
  const file = await world.files.open(world.context.paths.cacheFile(inode.kernelNodeId), "r+");
  await file.write(TEXT, 0);
  const next = world.crash();
  await next.recover();
  expect(next.inode(inode.id)).toMatchObject({ content: "dirty", hash: null });
});
