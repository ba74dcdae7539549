/** Open files through trouble of the disk, and what was removed on purpose: gone from the disk too, in the end. */
import { expect, test } from "vitest";
import { FsError } from "../../../src/engine/api/index.ts";
import { evict } from "../../../src/engine/files/evict.ts";
import type { Disk } from "../../../src/engine/host/index.ts";
import { createFileSystem, listQueue } from "../../../src/engine/ops/index.ts";
import { hasCode } from "../../../src/lib/system-error.ts";
import { type KernelNodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";

const KIB = 1024;

/** A disk that is as the test says. */
function withTrouble(world: BytesWorld) {
  const now: { trouble: Disk["trouble"] } = { trouble: undefined };
  const { disk } = world.context;
  const isWell = () => now.trouble === undefined;
  Object.defineProperty(disk, "trouble", { get: () => now.trouble });
  Object.defineProperty(disk, "mayKeep", { get: isWell });
  Object.assign(disk, {
    requireChangeable() {
      if (now.trouble === "readOnly") throw new FsError("EROFS", "read-only");
      if (now.trouble === "gone") throw new FsError("EIO", "gone");
    },
  });
  return now;
}

const said = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: FsError) => error.code,
  );

for (const trouble of ["full", "readOnly"] as const) {
  for (const isPartlyHere of [false, true]) {
    test(`read while the disk is ${trouble}, ${isPartlyHere ? "partly" : "not"} here: a writer comes when it is well`, async () => {
      const world = await createBytesWorld();
      const disk = withTrouble(world);
      const content = pattern(3_000 * KIB);
      const inode = world.addRemote(content);
      if (isPartlyHere) {
        const first = await world.open(inode);
        await world.read(first, 0, 10);
        await world.close(first);
      }
      disk.trouble = trouble;
      const reader = await world.open(inode);
      const same = async (offset: number, expected: Uint8Array) =>
        expect(Buffer.compare(await world.read(reader, offset, expected.length), expected)).toBe(0);
      await same(2_000 * KIB, content.subarray(2_000 * KIB, 2_001 * KIB));
      const open = world.open(inode, { write: true });
      // A file that is here needs no room to be opened.
      const isRoomNeeded = trouble === "readOnly" || !isPartlyHere;
      if (isRoomNeeded) expect(await said(open)).toBe(trouble === "full" ? "ENOSPC" : "EROFS");
      else await world.close(await open);

      disk.trouble = undefined;
      const writer = await world.open(inode, { write: true });
      const written = Buffer.from("written in the middle");
      expect(await world.write(writer, 2_000 * KIB, written)).toBe(written.length);
      const after = Buffer.from(content);
      written.copy(after, 2_000 * KIB);
      await same(1_999 * KIB, after.subarray(1_999 * KIB, 2_002 * KIB));
      await same(0, after);
      await world.close(writer);
      await same(0, after);
      await world.close(reader);
      await world.clock.settle();
      expect([world.files.openHandles(), world.inode(inode.id).content, world.inode(inode.id).size]).toEqual([
        0,
        "dirty",
        content.length,
      ]);
      expect(Buffer.compare(await world.readAll(world.inode(inode.id)), after)).toBe(0);
      expect(world.complaints).toEqual([]);
    });
  }
}

test("what is read past the disk is kept for a few files only, whoever reads how many", async () => {
  const world = await createBytesWorld();
  withTrouble(world).trouble = "full";
  const inodes = Array.from({ length: 40 }, (_, index) => world.addRemote(pattern(64 * KIB, index)));
  const handles = await Promise.all(inodes.map((inode) => world.open(inode)));
  for (let round = 0; round < 2; round += 1) {
    for (const [index, handle] of handles.entries()) {
      const part = await world.read(handle, 100, 50);
      expect(Buffer.compare(part, pattern(64 * KIB, index).subarray(100, 150))).toBe(0);
    }
  }
  const kept = () =>
    [...world.context.cacheFiles.values()].filter(({ disk: { uncachedBytes } }) => uncachedBytes !== undefined).length;
  expect([kept(), world.context.fileState.uncachedReaders.size]).toEqual([16, 16]);
  for (const handle of handles) await world.close(handle);
  expect(world.context.fileState.uncachedReaders.size).toBe(0);
});

async function filesOf(world: BytesWorld): Promise<number[]> {
  const kernelNodeIds: number[] = [];
  for await (const kernelNodeId of world.context.paths.cacheFiles()) kernelNodeIds.push(kernelNodeId);
  return kernelNodeIds;
}

/** Written here, removed by a program, forgotten by the kernel: its kernel node id. */
async function removed(world: BytesWorld): Promise<KernelNodeId> {
  const { inode, handle } = await world.create();
  await world.write(handle, 0, pattern(10 * KIB));
  await world.close(handle);
  const [entry] = world.context.metadata.entries.ofInode(inode.id);
  if (entry === undefined) throw new Error("the file has no name");
  await createFileSystem(world.context).unlink(CALLER, kernelNodeId(1), entry.name);
  world.context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
  world.context.orphans.dropForgotten();
  return inode.kernelNodeId;
}

test("the state dir is gone: the queue says of a file that nobody has open that its bytes went with it", async () => {
  const world = await createBytesWorld();
  const disk = withTrouble(world);
  const [held, lost] = [await world.create(), await world.create()];
  for (const { handle } of [held, lost]) await world.write(handle, 0, Buffer.from("bytes"));
  await world.close(lost.handle);
  disk.trouble = "gone";
  const queue = new Map<string, string>();
  const list = async () => {
    for await (const items of listQueue(world.context, () => [], 10))
      for (const { path, why } of items) queue.set(path, why);
  };
  await Promise.all([list(), world.clock.advance(100)]);
  expect([...queue.keys()].sort()).toEqual([`/${held.name}`, `/${lost.name}`].sort());
  expect(queue.get(`/${lost.name}`)).toBe("its bytes went with the state dir");
  expect(queue.get(`/${held.name}`)).not.toBe(queue.get(`/${lost.name}`));
});

test("the state dir is gone, and another mount's is in its place: nothing of that is read, changed or removed", async () => {
  const world = await createBytesWorld();
  const { context, files } = world;
  const disk = withTrouble(world);
  const content = pattern(10 * KIB);
  const [read, evicted] = [world.addRemote(content), world.addRemote(pattern(10 * KIB, 2))];
  for (const inode of [read, evicted]) await world.readAll(inode);
  const { inode, handle } = await world.create();
  await world.write(handle, 0, content);
  await world.close(handle);
  const [entry] = context.metadata.entries.ofInode(inode.id);
  await createFileSystem(context).unlink(CALLER, kernelNodeId(1), entry?.name ?? "");
  await world.clock.settle();

  disk.trouble = "gone";
  const others = Buffer.from(pattern(10 * KIB, 3));
  const paths = [read, evicted, inode].map(({ kernelNodeId }) => context.paths.cacheFile(kernelNodeId));
  for (const path of paths) {
    const file = await files.open(path, "w+");
    await file.write(others, 0);
    await file.close();
  }
  context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
  context.orphans.dropForgotten();
  await world.clock.settle();
  await evict(context, 20 * KIB);
  expect(Buffer.compare(await world.readAll(read), content)).toBe(0);
  for (const path of paths) {
    const file = await files.open(path, "r");
    const found = Buffer.alloc(others.length);
    expect(await file.read(found, 0, found.length, 0)).toBe(others.length);
    expect(Buffer.compare(found, others)).toBe(0);
    await file.close();
  }
});

test("a state dir that has taken the place of ours just now: its files are not emptied", async () => {
  const world = await createBytesWorld();
  const { context, files } = world;
  const disk = withTrouble(world);
  const inode = world.addRemote(pattern(10 * KIB));
  const path = context.paths.cacheFile(inode.kernelNodeId);
  await context.paths.prepareFolderOf(path);
  const others = await files.open(path, "w+");
  await others.write(pattern(100, 3), 0);
  Object.assign(context.disk, {
    lookForFolder() {
      disk.trouble = "gone";
    },
  });
  await said(world.open(inode));
  expect((await others.stat()).size).toBe(100);
  await others.close();
});

test("the state dir is gone: what another mount's has in its place is not sent as the snapshot made here", async () => {
  const world = await createBytesWorld();
  const { context, files } = world;
  const disk = withTrouble(world);
  const { inode, handle } = await world.create();
  await world.write(handle, 0, pattern(100 * KIB));
  await world.close(handle);
  await context.snapshots.take(inode.id, CALLER.signal);
  const snapshot = context.metadata.snapshots.newestOf(inode.id);
  if (snapshot === undefined) throw new Error("there is no snapshot");
  disk.trouble = "gone";
  const others = await files.open(context.paths.cacheFile(inode.kernelNodeId), "w+");
  await others.write(pattern(100 * KIB, 3), 0);
  await others.close();
  const read = async () => {
    for await (const _ of context.snapshotFiles.source(snapshot).read());
  };
  await expect(read()).rejects.toMatchObject({ code: "ENOENT" });
});

test("killed before its file is gone, a removed file is gone after the next start, and nothing is quarantined", async () => {
  const world = await createBytesWorld();
  await removed(world);
  // The rows have gone in this turn, the file has not.
  const next = world.crash();
  expect(await filesOf(next)).toHaveLength(1);
  await next.recover();
  expect([await filesOf(next), await next.files.list("/state/quarantine")]).toEqual([[], []]);
  expect(next.context.metadata.gone.some(1)).toEqual([]);
});

test("a file that could not be removed is removed when the disk is looked at again, or at the next start", async () => {
  const world = await createBytesWorld();
  const { syncRows } = world.context;
  const fail = () => Promise.reject(Object.assign(new Error("input/output error"), { code: "EIO" }));
  Object.assign(world.context, { syncRows: fail });
  await removed(world);
  await world.clock.settle();
  expect([(await filesOf(world)).length, world.context.fileState.isLeft]).toEqual([1, true]);
  await world.context.space.look();
  await world.clock.settle();
  expect(await filesOf(world)).toHaveLength(1);
  Object.assign(world.context, { syncRows });
  await world.context.space.look();
  await world.clock.settle();
  expect([await filesOf(world), world.context.fileState.isLeft]).toEqual([[], false]);
});

test("a file that cannot be removed keeps no other from it, however many are left", async () => {
  const world = await createBytesWorld();
  const { context, files } = world;
  const first = await removed(world);
  const isStuck = (path: string) => path === context.paths.cacheFile(first);
  const stuck = Object.assign(new Error("operation not permitted"), { code: "EPERM" });
  Object.assign(context.runtime, {
    files: { ...files, remove: (path: string) => (isStuck(path) ? Promise.reject(stuck) : files.remove(path)) },
  });
  for (let index = 0; index < 250; index += 1)
    context.metadata.gone.add({ kind: "live", id: kernelNodeId(first + 1 + index) });
  const left = () => context.metadata.gone.some(1_000).map(({ id }) => id);
  await world.clock.settle();
  expect([left().length, context.fileState.isLeft]).toEqual([251, true]);
  await context.space.look();
  await world.clock.settle();
  expect([left(), context.fileState.isLeft]).toEqual([[first], true]);
  Object.assign(context.runtime, { files });
  await context.space.look();
  await world.clock.settle();
  expect([left(), await filesOf(world), context.fileState.isLeft]).toEqual([[], [], false]);
});

test("a full disk: what needs room is tried again while cached files or removed ones make way, then it fails", async () => {
  const world = await createBytesWorld();
  const { context, clock } = world;
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  let tries = 0;
  const work = (failures: number) => async () => {
    tries += 1;
    if (tries <= failures) throw full;
    return "done";
  };
  // Nothing to wait for.
  expect(await said(context.space.despiteFull(1, work(9)))).toBe("ENOSPC");
  expect(tries).toBe(1);
  // Cached files, one of which is enough.
  await world.readAll(world.addRemote(pattern(100 * KIB)));
  await clock.advance(10);
  tries = 0;
  expect(await context.space.despiteFull(1, work(1))).toBe("done");
  expect(context.metadata.cacheFiles.totalBytes()).toBe(0);
  // Removed ones, whose bytes are on their way out.
  tries = 0;
  context.fileState.nameRemoved(clock.elapsed());
  const waiting = context.space.despiteFull(1, work(5));
  await clock.advance(200);
  expect(await waiting).toBe("done");
  tries = 0;
  const inVain = said(context.space.despiteFull(1, work(1_000)));
  await clock.advance(2_000);
  expect([await inVain, tries < 100]).toEqual(["ENOSPC", true]);
  // Any other trouble is told at once.
  tries = 0;
  const other = Object.assign(new Error("input/output error"), { code: "EIO" });
  expect(await said(context.space.despiteFull(1, () => Promise.reject(other)))).toBe("EIO");
});

/** Of a gateway that shows only heads: all bytes have to be here before a writer comes. */
function headsOnly({ context }: BytesWorld): void {
  const { client } = context;
  const features = { ...client.features, isFull: false };
  const get = (target: typeof client, name: string) => (name === "features" ? features : Reflect.get(target, name));
  Object.assign(context, { client: new Proxy(client, { get }) });
}

/** A disk that is known to be full once it has said so. */
function fillsUp({ context }: BytesWorld) {
  const now = { mayKeep: true };
  Object.defineProperty(context.disk, "mayKeep", { get: () => now.mayKeep });
  context.disk.refused = (error) => {
    if (hasCode(error, "ENOSPC")) now.mayKeep = false;
  };
  return now;
}

test.each([
  { size: "in one piece", bytes: 500 * KIB, isPartlyHere: false },
  { size: "chunk by chunk", bytes: 5_000 * KIB, isPartlyHere: false },
  { size: "chunk by chunk, some of it here", bytes: 5_000 * KIB, isPartlyHere: true },
])("the disk becomes full while a file is brought whole for a writer, $size", async ({ bytes, isPartlyHere }) => {
  const world = await createBytesWorld();
  headsOnly(world);
  const { files, gateway } = world;
  fillsUp(world);
  const content = pattern(bytes);
  const { id, kernelNodeId } = world.addRemote(content);
  const reader = await world.open(world.inode(id));
  if (isPartlyHere) await world.read(reader, 2_000 * KIB, 10);
  const heal = files.fail({
    path: /live/,
    code: "ENOSPC",
    on: ["write"],
    after: bytes > 1_000 * KIB ? 9 : 0,
    times: 1e9,
  });
  const opened = () => said(world.open(world.inode(id), { write: true }));
  expect([await opened(), await opened()]).toEqual(["ENOSPC", "ENOSPC"]);
  // Whoever reads gets all of it, and nobody is told that it changed.
  for (const offset of [0, bytes / 2, bytes - KIB]) {
    const expected = content.subarray(offset, offset + KIB);
    expect(Buffer.compare(await world.read(reader, offset, KIB), expected)).toBe(0);
  }
  expect(world.inode(id)).toMatchObject({ content: "clean", kernelNodeId });
  // What the row says is here is; the rest is asked for once there is room, also after a crash.
  const after = world.crash();
  await after.recover();
  expect(Buffer.compare(await after.readAll(after.inode(id)), content)).toBe(0);
  expect([after.inode(id).content, after.files.openHandles(), gateway.running]).toEqual(["clean", 0, 0]);
  heal();
});

test("once the disk has room again, the writer comes and finds every byte", async () => {
  const world = await createBytesWorld();
  headsOnly(world);
  const disk = fillsUp(world);
  const content = pattern(5_000 * KIB);
  const { id } = world.addRemote(content);
  const heal = world.files.fail({ path: /live/, code: "ENOSPC", on: ["write"], after: 9, times: 1e9 });
  expect(await said(world.open(world.inode(id), { write: true }))).toBe("ENOSPC");
  heal();
  disk.mayKeep = true;
  const writer = await world.open(world.inode(id), { write: true });
  await world.write(writer, 10, Buffer.from("written"));
  await world.close(writer);
  const expected = Buffer.from(content);
  expected.set(Buffer.from("written"), 10);
  expect(Buffer.compare(await world.readAll(world.inode(id)), expected)).toBe(0);
  expect(world.files.openHandles()).toBe(0);
});
