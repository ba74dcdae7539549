/** Passthrough files, which the kernel reads and writes by itself: which files are, and that no write of one goes unnoticed. */
import { expect, test } from "vitest";
import { FsError, type HandleId, type OpenFlags } from "../../../src/engine/api/index.ts";
import { requireRange } from "../../../src/engine/files/fetch.ts";
import { createDisk } from "../../../src/engine/host/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { SILENT } from "../../../src/lib/log.ts";
import { entryId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf } from "../support/bytes-world.ts";
import { holdNext } from "../support/hold-next.ts";

const HEAD = Buffer.from("the head");
const NEWS = Buffer.from("news");
const READING: OpenFlags = { read: true, write: false, append: false, truncate: false, exclusive: false };
const WRITING: OpenFlags = { ...READING, write: true };

const passing = () => createBytesWorld({}, { isPassing: true });

/** A file of the gateway that is all here. */
async function whole(world: BytesWorld, name = "a"): Promise<Inode> {
  const { id } = world.addRemote(HEAD, { name });
  await world.readAll(world.inode(id));
  // What is written from here on has times of its own.
  await world.clock.advance(1000);
  return world.inode(id);
}

interface Passed {
  readonly handle: HandleId;
  /** Without a word to the file system. */
  write(bytes: Uint8Array, at?: number): void;
  close(): Promise<void>;
}

async function openPassed(world: BytesWorld, { id }: Inode, flags = WRITING): Promise<Passed> {
  const { handle, backing } = await createFileSystem(world.context).open(CALLER, world.inode(id).kernelNodeId, flags);
  if (backing === undefined || world.passthrough === undefined) throw new Error("not passthrough");
  const file = world.passthrough.fileOf(backing);
  return { handle, write: (bytes, at = 0) => file.write(bytes, at), close: () => world.close(handle) };
}

/** Open still, written to, and synced a while later. */
async function synced() {
  const world = await passing();
  const inode = await whole(world);
  const file = await openPassed(world, inode);
  file.write(NEWS);
  await world.clock.advance(1000);
  await createFileSystem(world.context).fsync(CALLER, file.handle, false);
  return { world, inode, file };
}

async function isPassed(world: BytesWorld, { id }: Inode, flags = READING): Promise<boolean> {
  const { handle, backing } = await createFileSystem(world.context).open(CALLER, world.inode(id).kernelNodeId, flags);
  await world.close(handle);
  return backing !== undefined;
}

async function after(world: BytesWorld): Promise<BytesWorld> {
  const next = world.crash();
  await next.recover();
  return next;
}

const snapshot = (world: BytesWorld, { id }: Inode) => world.context.snapshots.take(id, CALLER.signal);
const text = async (world: BytesWorld, inode: Inode) => Buffer.from(await world.readAll(inode)).toString();

test("a write is detected at close, and sent", async () => {
  const world = await passing();
  const { inode, handle } = await world.create();
  await world.close(handle);
  const file = await openPassed(world, inode);
  file.write(NEWS);
  await createFileSystem(world.context).flush(CALLER, file.handle);
  expect(world.inode(inode.id)).toMatchObject({ content: "dirty", size: NEWS.length, hash: null });
  await file.close();
  expect(await snapshot(world, inode)).toBe("taken");
  expect(world.inode(inode.id).hash).toBe(hashOf(NEWS));
  expect(world.passthrough?.registered()).toBe(0);
});

test("a change of the size needs no invalidation; any other change of attributes that the kernel holds does", async () => {
  const world = await passing();
  const { id, kernelNodeId } = await whole(world);
  const told: number[] = [];
  world.context.metadata.changed.onTell(({ inodes }) => told.push(...inodes));
  const toldAtClose = async (file: Passed) => {
    await world.clock.advance(1000);
    await createFileSystem(world.context).flush(CALLER, file.handle);
    return told.splice(0);
  };
  const file = await openPassed(world, world.inode(id));
  told.splice(0);
  file.write(NEWS, HEAD.length);
  expect(await toldAtClose(file)).toEqual([]);
  // Nobody has asked since: the kernel holds no attributes.
  file.write(NEWS);
  expect(await toldAtClose(file)).toEqual([]);
  // It was told, and then a mapping was written to.
  await createFileSystem(world.context).getattr(CALLER, kernelNodeId);
  file.write(NEWS);
  expect(await toldAtClose(file)).toEqual([id]);
  // It was written to, and then told.
  file.write(NEWS);
  const { stat } = await createFileSystem(world.context).getattr(CALLER, kernelNodeId);
  expect(await toldAtClose(file)).toEqual([]);
  expect((await createFileSystem(world.context).getattr(CALLER, kernelNodeId)).stat).toEqual(stat);
  // It was written to, and was in a list, of which not all may have been told.
  file.write(NEWS);
  await world.context.stats.found(world.inode(id));
  expect(await toldAtClose(file)).toEqual([id]);
  await file.close();
  const again = await openPassed(world, world.inode(id), { ...WRITING, truncate: true });
  told.splice(0);
  again.write(NEWS);
  expect(await toldAtClose(again)).toEqual([]);
  expect(world.inode(id).size).toBe(NEWS.length);
});

test.each([
  { how: "made longer", open: WRITING, at: HEAD.length },
  { how: "made shorter", open: { ...WRITING, truncate: true }, at: 0 },
])(
  "$how while a reader keeps it open, with attributes asked for after its close: a write to a mapping is invalidated again",
  async (before) => {
    const world = await passing();
    const { id, kernelNodeId } = await whole(world);
    const told: number[] = [];
    world.context.metadata.changed.onTell(({ inodes }) => told.push(...inodes));
    const reader = await openPassed(world, world.inode(id), { ...WRITING, write: false });
    const writer = await openPassed(world, world.inode(id), before.open);
    writer.write(NEWS, before.at);
    await writer.close();
    await createFileSystem(world.context).getattr(CALLER, kernelNodeId);
    const mapping = await openPassed(world, world.inode(id));
    told.splice(0);
    await world.clock.advance(1000);
    mapping.write(NEWS);
    await createFileSystem(world.context).flush(CALLER, mapping.handle);
    expect(told).toEqual([id]);
    await mapping.close();
    await reader.close();
  },
);

test("an open that fails after it has truncated the file is invalidated: the kernel knows of no such open", async () => {
  const world = await passing();
  const { id, kernelNodeId } = await whole(world);
  const told: number[] = [];
  world.context.metadata.changed.onTell(({ inodes }) => told.push(...inodes));
  const full = () => {
    throw new Error("no room for one more handle");
  };
  Object.assign(world.context.handleTable, { add: full });
  await expect(
    createFileSystem(world.context).open(CALLER, kernelNodeId, { ...WRITING, truncate: true }),
  ).rejects.toThrow();
  expect(world.inode(id).size).toBe(0);
  expect(told).toContain(id);
});

test("a change that fails after it has truncated the file is invalidated too", async () => {
  const world = await passing();
  const { id, kernelNodeId } = await whole(world);
  let forgotten = 0;
  const { kernel, runtime } = world.context;
  const everything = () => {
    forgotten += 1;
  };
  Object.assign(kernel, { cache: { ...kernel.cache, everything } });
  const step = (label: string) => {
    if (label === "commit: about to") throw new Error("no room for the rows");
  };
  Object.assign(world.context, { runtime: { ...runtime, step } });
  const change = createFileSystem(world.context).setattr(CALLER, kernelNodeId, { size: 2, mode: 0o600 });
  await expect(change).rejects.toThrow("no room for the rows");
  expect(world.inode(id).size).toBe(2);
  expect(forgotten).toBe(1);
});

test("a write after the last flush is detected when the last handle goes", async () => {
  const world = await passing();
  const inode = await whole(world);
  const file = await openPassed(world, inode);
  await createFileSystem(world.context).flush(CALLER, file.handle);
  expect(world.inode(inode.id).content).toBe("open");
  file.write(NEWS);
  await createFileSystem(world.context).release(file.handle);
  expect(world.inode(inode.id)).toMatchObject({ content: "dirty", size: HEAD.length });
  expect(await text(world, inode)).toBe("newshead");
});

test("a writer that opens and closes the file during the last close of another one does not go unnoticed", async () => {
  const world = await passing();
  const { context, clock } = world;
  const inode = await whole(world);
  const first = await openPassed(world, inode);
  await createFileSystem(context).flush(CALLER, first.handle);
  first.write(NEWS);
  await clock.advance(1_000);
  Object.assign(context, { dirtyLog: { ...context.dirtyLog } });
  const held = holdNext(context.dirtyLog, "flush");
  const closing = createFileSystem(context).release(first.handle);
  await clock.advance(1_000);
  expect(held.isReached()).toBe(true);
  const second = await openPassed(world, inode);
  second.write(Buffer.from("later news"));
  await createFileSystem(context).release(second.handle);
  await clock.advance(1_000);
  held.goOn();
  await closing;
  expect(world.inode(inode.id)).toMatchObject({ content: "dirty", size: 10 });
  expect(await snapshot(world, inode)).toBe("taken");
  expect(world.inode(inode.id).hash).toBe(hashOf(Buffer.from("later news")));
});

test("a write that leaves the times as they were is detected all the same", async () => {
  const world = await passing();
  const { inode, handle } = await world.create();
  await world.close(handle);
  const first = await openPassed(world, inode);
  first.write(NEWS);
  await first.close();
  expect(await snapshot(world, inode)).toBe("taken");
  // At the same moment of the clock, and of the same size.
  const second = await openPassed(world, inode);
  await createFileSystem(world.context).flush(CALLER, second.handle);
  second.write(Buffer.from("more"));
  await second.close();
  await snapshot(world, inode);
  expect(world.inode(inode.id).hash).toBe(hashOf(Buffer.from("more")));
});

test("a file that is opened for writing and not written to is as clean as before", async () => {
  const world = await passing();
  const inode = await whole(world);
  const { hash } = world.inode(inode.id);
  await (await openPassed(world, inode)).close();
  expect(world.inode(inode.id)).toMatchObject({ content: "clean", hash });
});

test("after a crash the file is looked at, whether it was written or not", async () => {
  for (const isWritten of [true, false]) {
    const world = await passing();
    const inode = await whole(world);
    const file = await openPassed(world, inode);
    if (isWritten) file.write(NEWS);
    const next = await after(world);
    expect(await snapshot(next, inode)).toBe(isWritten ? "taken" : "clean");
    expect(await text(next, inode)).toBe(isWritten ? "newshead" : "the head");
  }
});

test("a write after a snapshot is not lost in a crash", async () => {
  for (const isWritten of [true, false]) {
    const world = await passing();
    const inode = await whole(world);
    const file = await openPassed(world, inode);
    file.write(NEWS);
    await world.clock.advance(1000);
    expect(await snapshot(world, inode)).toBe("taken");
    const { changes } = world.inode(inode.id);
    if (isWritten) file.write(Buffer.from("late"));
    const next = await after(world);
    const found = next.inode(inode.id);
    // The snapshot counts for as long as nothing was written since.
    expect(found.changes === changes).toBe(!isWritten);
    expect(await text(next, inode)).toBe(isWritten ? "latehead" : "newshead");
    expect(await snapshot(next, inode)).toBe("taken");
    expect(next.inode(inode.id).hash).toBe(hashOf(Buffer.from(isWritten ? "latehead" : "newshead")));
  }
});

test("a content that was synced and closed counts as whole after power loss", async () => {
  const { world, inode, file } = await synced();
  await file.close();
  while (world.context.fileState.tasks.size > 0) await Promise.all(world.context.fileState.tasks);
  const next = await world.powerLoss();
  expect(await text(next, inode)).toBe("newshead");
  expect(await snapshot(next, inode)).toBe("taken");
});

test("a content that was written again after its sync, or is still open, is quarantined", async () => {
  for (const isClosed of [true, false]) {
    const world = await passing();
    const inode = await whole(world);
    const file = await openPassed(world, inode);
    file.write(NEWS);
    await createFileSystem(world.context).fsync(CALLER, file.handle, false);
    await world.clock.advance(1000);
    file.write(Buffer.from("torn"));
    if (isClosed) await file.close();
    const next = await world.powerLoss();
    expect(await text(next, inode)).toBe("tornhead");
    expect(await snapshot(next, inode)).toBe("quarantined");
  }
});

test("a writer opens the file during a sync: its bytes do not count as durable when that ends", async () => {
  const world = await passing();
  const inode = await whole(world);
  const before = await openPassed(world, inode);
  before.write(NEWS);
  await before.close();
  const reader = await openPassed(world, inode, READING);
  const cacheFile = world.context.cacheFiles.get(inode.kernelNodeId);
  if (cacheFile === undefined) throw new Error("not open");
  const { sync } = cacheFile.disk.file;
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  Object.assign(cacheFile.disk.file, { sync: () => held.then(sync) });
  const syncing = createFileSystem(world.context).fsync(CALLER, reader.handle, false);
  const writer = await openPassed(world, inode);
  goOn();
  await syncing;
  writer.write(Buffer.from("torn"));
  await world.context.syncRows();
  const next = await world.powerLoss();
  expect(await text(next, inode)).toBe("tornhead");
  expect(await snapshot(next, inode)).toBe("quarantined");
});

test("a content with a snapshot from while it was open, and not written since, is not quarantined", async () => {
  const { world, inode } = await synced();
  expect(await snapshot(world, inode)).toBe("taken");
  await world.context.syncRows();
  const next = await world.powerLoss();
  expect(await text(next, inode)).toBe("newshead");
  expect(await snapshot(next, inode)).toBe("taken");
});

test("a file that is not all here, or whose write takes bits of its mode away, is not passthrough", async () => {
  const world = await passing();
  const { id } = world.addRemote(HEAD, { name: "b" });
  expect(await isPassed(world, world.inode(id))).toBe(false);
  const inode = await whole(world);
  expect(await isPassed(world, inode)).toBe(true);
  await createFileSystem(world.context).setattr(CALLER, inode.kernelNodeId, { mode: 0o4755 });
  expect(await isPassed(world, inode)).toBe(false);
  await createFileSystem(world.context).setattr(CALLER, inode.kernelNodeId, { mode: 0o755 });
  expect(await isPassed(world, inode, WRITING)).toBe(true);
});

test("all handles of a file are served as the first one is", async () => {
  const world = await passing();
  const { id } = world.addRemote(HEAD, { name: "b" });
  const first = await createFileSystem(world.context).open(CALLER, world.inode(id).kernelNodeId, READING);
  await world.readAll(world.inode(id));
  expect(await isPassed(world, world.inode(id))).toBe(false);
  await world.close(first.handle);
  const second = await openPassed(world, world.inode(id), READING);
  const third = await createFileSystem(world.context).open(CALLER, world.inode(id).kernelNodeId, WRITING);
  expect(third.backing).toBeDefined();
  await second.close();
  expect(world.passthrough?.registered()).toBe(1);
  await world.close(third.handle);
  expect(world.passthrough?.registered()).toBe(0);
});

test("a write that could not be detected is detected for the next writer", async () => {
  const world = await passing();
  const inode = await whole(world);
  const file = await openPassed(world, inode);
  file.write(NEWS);
  const heal = world.files.fail({ path: /live/, code: "EIO", on: ["stat"], times: Number.POSITIVE_INFINITY });
  await expect(createFileSystem(world.context).flush(CALLER, file.handle)).rejects.toMatchObject({ code: "EIO" });
  await createFileSystem(world.context).release(file.handle);
  heal();
  expect(world.inode(inode.id).content).toBe("open");
  await (await openPassed(world, inode)).close();
  expect(world.inode(inode.id).content).toBe("dirty");
  expect(await text(world, inode)).toBe("newshead");
});

test("a passthrough writer beside a reader from before there was a quota: the bytes it adds count, and wait", async () => {
  const world = await passing();
  const { context } = world;
  const inode = await whole(world);
  const reader = await openPassed(world, inode, READING);
  context.quota.refused({ quota: 100, used: HEAD.length, growth: 1 });
  // Where there is a quota nobody begins to write unheard; the kernel takes no mixture, though.
  const writer = await openPassed(world, inode);
  writer.write(Buffer.alloc(150, "n"));
  await world.clock.advance(1000);
  const { handle } = await world.create();
  // So much waits that not a byte more fits; the gateway cannot be asked whether there is more room by now.
  const added = expect(world.write(handle, 0, Buffer.from("x"))).rejects.toMatchObject({ code: "EDQUOT" });
  await world.clock.advance(3000);
  await added;
  await writer.close();
  await reader.close();
  const [entry] = context.metadata.entries.ofInode(inode.id);
  const row = context.metadata.nodes.ofEntry(entry?.id ?? entryId(0));
  if (row === undefined) throw new Error("no row");
  expect(context.planner.fits(row)).toBe(false);
  expect(await text(world, inode)).toBe("n".repeat(150));
  expect(await isPassed(world, inode)).toBe(false);
});

test("on a disk with little room no file becomes passthrough for a writer: cached files could not be evicted in time", async () => {
  const world = await passing();
  const inode = await whole(world);
  let available = 2 ** 30;
  const reserve = { size: 0, room: 0, reservedBytes: () => 0, restore: async () => true, giveUp: async () => false };
  const stateDisk = {
    reserve: { ...reserve, giveUpNow: () => false },
    isThere: () => true,
    look: () => ({ problem: undefined, total: 2 ** 40, available }),
  };
  const disk = createDisk({ stateDisk, limits: undefined, folder: "/state", log: SILENT, onChange() {} });
  Object.assign(world.context, { disk });
  disk.look();
  expect(await isPassed(world, inode, WRITING)).toBe(true);
  available -= 1;
  disk.look();
  expect([await isPassed(world, inode, WRITING), await isPassed(world, inode, READING)]).toEqual([false, true]);
});

test("a file with persisted missing ranges is not passthrough for a writer: a crash would fetch them over what was written", async () => {
  const world = await passing();
  const { context } = world;
  const { id, kernelNodeId } = world.addRemote(HEAD, { name: "a" });
  // As reading ahead does, for which nobody has a handle.
  const cacheFile = await context.cacheFiles.open(kernelNodeId, { write: false });
  const { cacheFiles } = context.metadata;
  const { update } = cacheFiles;
  Object.assign(cacheFiles, {
    update() {
      throw new FsError("ENOSPC", "the rows take no changes");
    },
  });
  await requireRange(context, cacheFile, 0, HEAD.length, CALLER.signal);
  await Promise.all([...cacheFile.ranges.downloads].map(({ done }) => done));
  Object.assign(cacheFiles, { update });
  const { handle, backing } = await createFileSystem(context).open(CALLER, kernelNodeId, WRITING);
  await cacheFile.close({ write: false });
  if (backing === undefined) await world.write(handle, 0, NEWS);
  else world.passthrough?.fileOf(backing).write(NEWS, 0);
  const next = world.crash();
  await next.recover();
  const expected = Buffer.from(HEAD);
  expected.set(NEWS);
  expect(Buffer.from(await next.readAll(next.inode(id)))).toEqual(expected);
});

test("an open that fails when its handle is stored counts for nothing: the next one is passthrough", async () => {
  const world = await passing();
  const { context } = world;
  const { id, kernelNodeId } = world.addRemote(HEAD, { name: "a" });
  // Somebody needs it open for longer, and nobody has a handle.
  const cacheFile = await context.cacheFiles.open(kernelNodeId, { write: false });
  const { add } = context.handleTable;
  Object.assign(context.handleTable, {
    add() {
      throw new FsError("EIO", "too many open files");
    },
  });
  await expect(world.open(world.inode(id))).rejects.toThrow("too many open files");
  await expect(world.open(world.inode(id), { write: true })).rejects.toThrow("too many open files");
  expect(cacheFile.passthrough.kernelHandles).toBe(0);
  Object.assign(context.handleTable, { add });
  await requireRange(context, cacheFile, 0, HEAD.length, CALLER.signal);
  await Promise.all([...cacheFile.ranges.downloads].map(({ done }) => done));
  const passed = await openPassed(world, world.inode(id));
  passed.write(NEWS);
  await passed.close();
  await cacheFile.close({ write: false });
  expect([cacheFile.passthrough.kernelHandles, world.passthrough?.registered(), world.files.openHandles()]).toEqual([
    0, 0, 0,
  ]);
});
