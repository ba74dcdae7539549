/** Writing: what the rows say before, while and after bytes change, and what a crash leaves of it. */
import { expect, test } from "vitest";
import { FsError, type HandleId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { formatTime } from "../../../src/lib/time.ts";
import type { KernelNodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern, withParts } from "../support/bytes-world.ts";
import { holdNext } from "../support/hold-next.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const TEXT = Buffer.from("written here");

function same(actual: Uint8Array, expected: Uint8Array): void {
  expect(actual.length).toBe(expected.length);
  expect(Buffer.compare(actual, expected)).toBe(0);
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "no error",
    (error: unknown) => (error instanceof FsError ? error.code : `no FsError: ${String(error)}`),
  );
}

/** As its rows are at this moment, in a process that starts anew. */
async function successor(world: BytesWorld): Promise<BytesWorld> {
  const next = world.crash();
  await next.recover();
  return next;
}

test("content goes clean, open, dirty; and clean again when nothing was written", async () => {
  const world = await createBytesWorld();
  const { id, changes } = world.addRemote(pattern(1000));
  const reader = await world.open(world.inode(id));
  expect(world.inode(id).content).toBe("clean");
  const writer = await world.open(world.inode(id), { write: true });
  expect(world.inode(id)).toMatchObject({ content: "open", changes, hash: hashOf(pattern(1000)) });
  await world.close(writer);
  expect(world.inode(id)).toMatchObject({ content: "clean", changes });
  const again = await world.open(world.inode(id), { write: true });
  await world.write(again, 0, TEXT);
  expect(world.inode(id)).toMatchObject({ content: "dirty", changes: changes + 1, hash: null });
  const [row] = world.context.metadata.nodes.dirty(10);
  expect(row?.dirtySince).toBe(world.clock.wallClock());
  await world.write(again, 5, TEXT);
  expect(world.inode(id).changes).toBe(changes + 1);
  await world.close(again);
  await world.close(reader);
  expect(world.inode(id).content).toBe("dirty");
});

test("the label is on disk before a writer's open or a first write is answered", async () => {
  const world = await createBytesWorld({}, { turns: () => 5 });
  const { id } = world.addRemote(pattern(1000));
  const seen: string[] = [];
  const opening = world.open(world.inode(id), { write: true }).then((handle) => {
    seen.push(world.inode(id).content);
    return handle;
  });
  const handle = await opening;
  await world.write(handle, 0, TEXT).then(() => seen.push(world.inode(id).content));
  expect(seen).toEqual(["open", "dirty"]);
});

test("size and time of an open file are its own, those of a closed one the row's", async () => {
  const world = await createBytesWorld();
  const { id, kernelNodeId } = world.addRemote(pattern(1000), { attributes: { mtime: "1234.000000005" } });
  const handle = await world.open(world.inode(id), { write: true });
  expect((await createFileSystem(world.context).getattr(CALLER, kernelNodeId)).stat).toMatchObject({
    size: 1000,
    mtime: { seconds: 1234, nanoseconds: 5 },
  });
  await world.clock.advance(5000);
  await world.write(handle, 2000, TEXT);
  const during = (await createFileSystem(world.context).getattr(CALLER, kernelNodeId)).stat;
  expect(during.size).toBe(2000 + TEXT.length);
  expect(during.mtime.seconds).toBe(Math.floor(world.clock.wallClock() / 1000));
  expect(world.inode(id).size).toBe(1000);
  await world.close(handle);
  expect(world.inode(id)).toMatchObject({ size: 2000 + TEXT.length });
  expect(world.inode(id).attributes.mtime).toBe(formatTime(during.mtime));
});

test("a time a program sets lasts: while the file is open, after its close, and after a crash", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  const mtime = { seconds: 77, nanoseconds: 123 };
  await createFileSystem(world.context).setattr(CALLER, inode.kernelNodeId, { mtime, handle });
  expect((await createFileSystem(world.context).getattr(CALLER, inode.kernelNodeId)).stat.mtime).toEqual(mtime);
  await world.close(handle);
  expect(world.inode(inode.id).attributes.mtime).toBe("77.000000123");
  await createFileSystem(world.context).setattr(CALLER, inode.kernelNodeId, { mtime: { seconds: 78, nanoseconds: 0 } });
  const next = await successor(world);
  expect(next.inode(inode.id).attributes.mtime).toBe("78.000000000");
});

test("fetching into a file that is open for writing leaves its time alone", async () => {
  const world = await createBytesWorld();
  const { id, kernelNodeId } = world.addRemote(pattern(3 * MIB), { attributes: { mtime: "1234.000000005" } });
  const handle = await world.open(world.inode(id), { write: true });
  await world.clock.advance(1000);
  await world.read(handle, MIB, 1000);
  await world.clock.settle();
  expect((await createFileSystem(world.context).getattr(CALLER, kernelNodeId)).stat.mtime).toEqual({
    seconds: 1234,
    nanoseconds: 5,
  });
});

test("a write into what is missing survives a crash, and so does the origin around it", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const { id } = world.addRemote(content);
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, MIB + 100, TEXT);
  const next = await successor(world);
  const expected = Buffer.from(content);
  expected.set(TEXT, MIB + 100);
  expect(next.inode(id)).toMatchObject({ content: "dirty", size: content.length });
  same(await next.readAll(next.inode(id)), expected);
  expect(await next.context.snapshots.take(id, CALLER.signal)).toBe("taken");
  expect(next.inode(id).hash).toBe(hashOf(expected));
});

test("at whatever moment of a write the process dies, changed bytes never count as the origin's", async () => {
  const content = pattern(1500 * KIB);
  for (let turns = 0; turns < 40; turns += 1) {
    const world = await createBytesWorld({}, { turns: () => 3 });
    const { id } = world.addRemote(content, { hash: null });
    const handle = await world.open(world.inode(id), { write: true });
    await world.read(handle, 0, 100);
    world.write(handle, 0, TEXT).catch(() => {});
    for (let turn = 0; turn < turns; turn += 1) await undefined;
    const next = await successor(world);
    const isChanged =
      Buffer.compare((await next.readAll(next.inode(id))).subarray(0, 12), content.subarray(0, 12)) !== 0;
    if (isChanged) expect(next.inode(id).content, `after ${turns} turns`).toBe("dirty");
  }
});

test("what was fetched and then overwritten is not fetched again after a crash", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const { id } = world.addRemote(content, { hash: null });
  const handle = await world.open(world.inode(id), { write: true });
  world.gateway.hold();
  const reading = world.read(handle, 0, 100);
  await world.clock.settle();
  world.gateway.breaks = [200 * KIB, 0, 0, 0, 0, 0, 0];
  world.gateway.release();
  await reading;
  // Here, but no row says so yet: the download is still under way.
  await world.write(handle, 10, TEXT);
  world.gateway.breaks = [];
  const next = await successor(world);
  expect(next.context.metadata.cacheFiles.get(next.inode(id).kernelNodeId)?.missing).toContain(3_145_728);
  expect(Buffer.from(await next.readAll(next.inode(id))).subarray(10, 10 + TEXT.length)).toEqual(TEXT);
});

test("a write while the same range is being fetched is never overwritten by it", async () => {
  const world = await createBytesWorld({}, { turns: () => 9 });
  const content = pattern(900 * KIB);
  const { id } = world.addRemote(content, { hash: null });
  const handle = await world.open(world.inode(id), { write: true });
  const reading = world.read(handle, 0, 900 * KIB);
  const writes = Array.from({ length: 14 }, async (_, index) => {
    for (let turn = 0; turn < index * 11; turn += 1) await undefined;
    await world.write(handle, index * 64 * KIB + 30, TEXT);
  });
  await Promise.all([reading, ...writes]);
  const expected = Buffer.from(content);
  for (let index = 0; index < 14; index += 1) expected.set(TEXT, index * 64 * KIB + 30);
  same(await world.read(handle, 0, 900 * KIB), expected);
});

test("looked at while bytes of the origin are on their way to the disk, a file has the time its program gave it", async () => {
  const world = await createBytesWorld();
  const { context, clock } = world;
  const { id, kernelNodeId } = world.addRemote(pattern(3 * MIB), { hash: null });
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, TEXT);
  const mtime = { seconds: 77, nanoseconds: 123 };
  await createFileSystem(context).setattr(CALLER, kernelNodeId, { mtime, handle });
  const { file } = context.cacheFiles.get(kernelNodeId)?.disk ?? {};
  if (file === undefined) throw new Error("not open");
  const held = holdNext(file, "setTimes");
  await clock.advance(5_000);
  // They are in the file, and its time has not been set back yet.
  const reading = world.read(handle, 2 * MIB, 100);
  await clock.settle();
  const shown = createFileSystem(context).getattr(CALLER, kernelNodeId);
  const flushed = createFileSystem(context).flush(CALLER, handle);
  await clock.settle();
  held.goOn();
  await Promise.all([reading, flushed]);
  expect((await shown).stat.mtime).toEqual(mtime);
  await world.close(handle);
  expect(world.inode(id).attributes.mtime).toBe("77.000000123");
});

test("asked for its time by many while it is closed, a file tells all of them", async () => {
  const world = await createBytesWorld({}, { turns: () => 50 });
  const { context } = world;
  const { id, kernelNodeId } = world.addRemote(pattern(3 * MIB), { hash: null });
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, TEXT);
  const cacheFile = context.cacheFiles.get(kernelNodeId);
  if (cacheFile === undefined) throw new Error("not open");
  await createFileSystem(context).flush(CALLER, handle);
  const free = await cacheFile.ranges.lock.hold(0, 1);
  const asked = Array.from({ length: 5 }, () => createFileSystem(context).getattr(CALLER, kernelNodeId));
  const closing = createFileSystem(context).release(handle);
  for (let turns = 0; turns < 10; turns += 1) await undefined;
  free();
  await closing;
  expect(await Promise.all(asked)).toHaveLength(5);
});

test("what is written while the file is given its time back has its own time", async () => {
  const world = await createBytesWorld();
  const { context, clock } = world;
  const { id, kernelNodeId } = world.addRemote(pattern(3 * MIB), { hash: null });
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, TEXT);
  const { file } = context.cacheFiles.get(kernelNodeId)?.disk ?? {};
  if (file === undefined) throw new Error("not open");
  const held = holdNext(file, "setTimes");
  await clock.advance(5_000);
  const reading = world.read(handle, 2 * MIB, 100);
  await clock.settle();
  await clock.advance(5_000);
  const now = Math.floor(clock.wallClock() / 1000);
  await world.write(handle, 0, TEXT);
  held.goOn();
  await reading;
  await world.close(handle);
  expect(Number(world.inode(id).attributes.mtime?.split(".")[0])).toBe(now);
});

test("truncated and grown again: zeros, not the origin", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const { id } = world.addRemote(content);
  await world.truncate(id, 1000);
  await world.truncate(id, 5000);
  const next = await successor(world);
  const expected = Buffer.alloc(5000);
  expected.set(content.subarray(0, 1000));
  same(await next.readAll(next.inode(id)), expected);
});

test("truncating a superseded kernel node id by path is ESTALE", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(10));
  world.context.metadata.inodes.replaceKernelNodeId(inode.id, {});
  expect(await codeOf(createFileSystem(world.context).setattr(CALLER, inode.kernelNodeId, { size: 0 }))).toBe("ESTALE");
});

test("an open that truncates asks the gateway for nothing", async () => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(3 * MIB));
  const handle = await world.open(world.inode(id), { write: true, truncate: true });
  await world.write(handle, 0, TEXT);
  await world.close(handle);
  same(await world.readAll(world.inode(id)), TEXT);
  expect(world.gateway.calls).toEqual([]);
});

test("punched and zeroed ranges are zeros though they were missing; reserved space stays missing", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const { id } = world.addRemote(content);
  const handle = await world.open(world.inode(id), { write: true });
  await createFileSystem(world.context).allocate(CALLER, handle, 3, 1000, 2000);
  await createFileSystem(world.context).allocate(CALLER, handle, 16, MIB, 5000);
  await createFileSystem(world.context).allocate(CALLER, handle, 0, 2 * MIB, 2 * MIB);
  expect(await codeOf(createFileSystem(world.context).allocate(CALLER, handle, 8, 0, 4096))).toBe("EOPNOTSUPP");
  expect(await codeOf(createFileSystem(world.context).allocate(CALLER, handle, 0, 0, 0))).toBe("EINVAL");
  const expected = Buffer.alloc(4 * MIB);
  expected.set(content);
  expected.fill(0, 1000, 3000);
  expected.fill(0, MIB, MIB + 5000);
  const next = await successor(world);
  same(await next.readAll(next.inode(id)), expected);
});

test("a fallocate that the disk has no room for leaves the file as it was", async () => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(1000));
  const handle = await world.open(world.inode(id), { write: true });
  await world.read(handle, 0, 1000);
  const [cacheFile] = [...world.context.cacheFiles.values()];
  if (cacheFile === undefined) throw new Error("not open");
  const {
    disk: { file },
  } = cacheFile;
  // As ext4: what there was room for is allocated.
  file.allocate = async () => {
    await file.truncate(500_000);
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  };
  expect(await codeOf(createFileSystem(world.context).allocate(CALLER, handle, 0, 0, MIB))).toBe("ENOSPC");
  expect((await file.stat()).size).toBe(1000);
  same(await world.read(handle, 0, 2000), pattern(1000));
});

test("a full disk is ENOSPC; what was there stays, and nothing counts as clean", async () => {
  const world = await createBytesWorld({}, { capacity: 64 * KIB });
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  expect(await codeOf(world.write(handle, 100 * KIB, pattern(64 * KIB)))).toBe("ENOSPC");
  await world.close(handle);
  expect(world.inode(inode.id).content).toBe("dirty");
  expect(Buffer.from(await world.readAll(inode)).subarray(0, TEXT.length)).toEqual(TEXT);
});

test("a failed write into what is missing leaves the origin there", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const { id } = world.addRemote(content);
  const handle = await world.open(world.inode(id), { write: true });
  world.files.fail({ path: /live/, code: "EIO", on: ["write"] });
  expect(await codeOf(world.write(handle, 1000, TEXT))).toBe("EIO");
  same(await world.read(handle, 0, 5000), content.subarray(0, 5000));
});

test.each<{ what: string; change(world: BytesWorld, handle: HandleId, kernelNodeId: KernelNodeId): Promise<unknown> }>([
  {
    what: "a write",
    change: ({ context }, handle) => createFileSystem(context).write(CALLER, handle, 0, TEXT, { killPrivileges: true }),
  },
  { what: "fallocate", change: ({ context }, handle) => createFileSystem(context).allocate(CALLER, handle, 0, 0, 20) },
  {
    what: "an open that cuts it short",
    change: ({ context }, handle, kernelNodeId) =>
      createFileSystem(context).setattr(CALLER, kernelNodeId, { killPrivileges: true, handle }),
  },
])("$what by an ordinary user takes set-user-id away, and the kernel hears of it", async ({ change }) => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(10), { attributes: { mode: 0o6755 } });
  const handle = await world.open(world.inode(id), { write: true });
  const told: number[] = [];
  world.context.metadata.changed.onTell(({ inodes, ours }) => {
    told.push(...[...inodes].filter((inode) => ours.has(inode)));
  });
  await change(world, handle, world.inode(id).kernelNodeId);
  expect(world.inode(id).attributes.mode).toBe(0o755);
  expect(told).toContain(id);
});

test("fallocate by root leaves set-user-id", async () => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(10), { attributes: { mode: 0o4755 } });
  const handle = await world.open(world.inode(id), { write: true });
  await createFileSystem(world.context).allocate({ ...CALLER, uid: 0 }, handle, 0, 0, 20);
  expect(world.inode(id).attributes.mode).toBe(0o4755);
});

test("writing through a handle that is not open for it is EBADF", async () => {
  const world = await createBytesWorld();
  const handle = await world.open(world.addRemote(pattern(10)));
  expect(await codeOf(world.write(handle, 0, TEXT))).toBe("EBADF");
});

test("mounted read-only, an open for writing is EROFS", async () => {
  const world = await createBytesWorld({ readOnly: true });
  expect(await codeOf(world.open(world.addRemote(pattern(10)), { write: true }))).toBe("EROFS");
});

test("fsync: bytes and rows, in that order; many at once share", async () => {
  const order: string[] = [];
  const world = await createBytesWorld();
  const { handle } = await world.create();
  const { cacheFile } = world.context.handles.get(handle) as unknown as {
    cacheFile: { disk: { file: { sync(): Promise<void> } } };
  };
  const { sync } = cacheFile.disk.file;
  cacheFile.disk.file.sync = async () => {
    order.push("bytes");
    await sync();
  };
  const context = withParts(world.context, {
    syncRows: async () => {
      order.push("rows");
    },
  });
  await world.write(handle, 0, TEXT);
  await createFileSystem(context).fsync(CALLER, handle, false);
  expect(order).toEqual(["bytes", "rows"]);
  order.length = 0;
  await Promise.all(Array.from({ length: 20 }, () => createFileSystem(context).fsync(CALLER, handle, false)));
  expect(order.filter((each) => each === "bytes").length).toBeLessThanOrEqual(2);
});

test("an error of the disk in fsync is told", async () => {
  const world = await createBytesWorld();
  const { handle } = await world.create();
  await world.write(handle, 0, TEXT);
  world.files.fail({ path: /live/, code: "EIO", on: ["sync"] });
  expect(await codeOf(createFileSystem(world.context).fsync(CALLER, handle, false))).toBe("EIO");
});

test("an error while closing is logged, and the file is still known to be dirty", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  world.files.fail({ path: /live/, code: "EIO", on: ["stat"], times: 10 });
  await world.close(handle).catch(() => {});
  await createFileSystem(world.context).release(handle);
  expect(world.complaints.length).toBeGreaterThan(0);
  expect(world.inode(inode.id).content).toBe("dirty");
  expect(world.context.cacheFiles.size).toBe(0);
});

for (const how of ["write", "truncate", "allocate"] as const) {
  test(`cut short, and the rows could not be told: what is new behind that is zeros after a crash too, by ${how}`, async () => {
    const world = await createBytesWorld();
    const { cacheFiles } = world.context.metadata;
    const { id } = world.addRemote(pattern(1000));
    const handle = await world.open(world.inode(id), { write: true });
    const { update } = cacheFiles;
    Object.assign(cacheFiles, {
      update(...changed: Parameters<typeof update>) {
        // That it changes they can be told.
        if ("missing" in changed[1]) throw new FsError("ENOSPC", "the rows take no changes");
        update(...changed);
      },
    });
    expect(await codeOf(world.truncate(id, 300, handle))).toBe("ENOSPC");
    Object.assign(cacheFiles, { update });
    if (how === "write") await world.write(handle, 600, TEXT);
    if (how === "truncate") await world.truncate(id, 600, handle);
    if (how === "allocate") await createFileSystem(world.context).allocate(CALLER, handle, 0, 500, 100);
    await createFileSystem(world.context).flush(CALLER, handle);
    const expected = Buffer.alloc(how === "write" ? 600 + TEXT.length : 600);
    expected.set(pattern(1000).subarray(0, 300));
    if (how === "write") expected.set(TEXT, 600);
    const next = await successor(world);
    same(await next.readAll(next.inode(id)), expected);
  });
}
