/** READs and WRITEs on the fast path: which of them may take it, and that no flow misses one. */
import { expect, test } from "vitest";
import type { HandleId } from "../../../src/engine/api/index.ts";
import { createDisk } from "../../../src/engine/host/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern } from "../support/bytes-world.ts";

const FIRST = Buffer.from("first");
const LATER = Buffer.from("LATER");

/** A new file, written to once: from here on writes may pass. */
async function written(world: BytesWorld): Promise<{ id: InodeId; handle: HandleId }> {
  const { inode, handle } = await world.create();
  await world.write(handle, 0, FIRST);
  return { id: inode.id, handle };
}

const passes = (world: BytesWorld, handle: HandleId) => world.fastPath.write(handle, LATER, 0);

test("after one write of a handle the next ones take the fast path, for a moment, and none after its end", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  expect(passes(world, handle)).toBe(false);
  await world.write(handle, 0, FIRST);
  expect(passes(world, handle)).toBe(true);
  await world.clock.advance(100);
  expect(passes(world, handle)).toBe(false);
  await world.write(handle, 0, FIRST);
  const other = await world.open(world.inode(inode.id), { write: true });
  expect([passes(world, other), passes(world, handle)]).toEqual([false, true]);
  await world.close(handle);
  expect(passes(world, handle)).toBe(false);
  expect(Buffer.from(await world.readAll(inode)).toString()).toBe("LATER");
  await world.close(other);
});

test("a read takes the fast path once all bytes are here and verified, not before", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * 1024 * 1024);
  const inode = world.addRemote(content);
  const handle = await world.open(inode);
  await world.read(handle, 0, 100);
  expect(world.fastPath.read(handle, 100, 0)).toBeUndefined();
  const whole = await world.readAll(inode);
  expect(whole).toHaveLength(content.length);
  await world.read(handle, 5, 100);
  expect(world.fastPath.read(handle, 100, 5)).toEqual(content.subarray(5, 105));
  await world.close(handle);
  expect(world.fastPath.read(handle, 100, 5)).toBeUndefined();
});

test("bytes that are here and not verified yet do not take the fast path", async () => {
  const world = await createBytesWorld();
  const content = pattern(2 * 1024 * 1024);
  const inode = world.addRemote(content, { hash: hashOf(pattern(10)) });
  const handle = await world.open(inode);
  for (let at = 0; at < content.length; at += 128 * 1024) {
    await world.read(handle, at, 128 * 1024).catch(() => {});
    expect(world.fastPath.read(handle, 10, 0)).toBeUndefined();
  }
  await world.close(handle);
});

test("no write takes the fast path into a file with missing ranges, nor where unsent bytes are limited", async () => {
  const world = await createBytesWorld();
  const part = await world.open(world.addRemote(pattern(3 * 1024 * 1024)), { write: true });
  await world.write(part, 0, FIRST);
  expect(passes(world, part)).toBe(false);
  await world.close(part);
  const limits = { keepFree: 0, unsentLimit: 1000 };
  const limited = createDisk({ stateDisk: undefined, limits, folder: "/state", log: world.context.log, onChange() {} });
  Object.assign(world.context, { disk: limited });
  const { handle } = await written(world);
  expect(passes(world, handle)).toBe(false);
  await world.close(handle);
});

test("no write takes the fast path into a file with privileges, which a write takes away, nor once it was given some", async () => {
  const world = await createBytesWorld();
  const { id, handle } = await written(world);
  const mode = (bits: number) =>
    createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { mode: bits });
  await mode(0o4755);
  expect(passes(world, handle)).toBe(false);
  await world.write(handle, 0, FIRST);
  expect(passes(world, handle)).toBe(false);
  await mode(0o755);
  await world.write(handle, 0, FIRST);
  expect(passes(world, handle)).toBe(true);
  await world.close(handle);
});

/** What the rows must say of a file that was just written to, whoever did it. */
function expectTold(world: BytesWorld, id: InodeId): void {
  const { content, hash, synced, kernelNodeId } = world.inode(id);
  expect({ content, hash, isSafe: synced === "durable" }).toEqual({ content: "dirty", hash: null, isSafe: false });
  expect(world.context.cacheFiles.get(kernelNodeId)).toMatchObject({
    changes: { isContentDirty: true, isDurable: false, hasUnpersistedStat: true },
  });
}

type Flow = (world: BytesWorld, id: InodeId, handle: HandleId) => Promise<unknown>;
const FLOWS: Record<string, Flow> = {
  "a snapshot": (world, id) => world.context.snapshots.take(id, CALLER.signal),
  "a close of one of its descriptors": (world, _id, handle) => createFileSystem(world.context).flush(CALLER, handle),
  "an fsync": (world, _id, handle) => createFileSystem(world.context).fsync(CALLER, handle, false),
  "a truncate": (world, id) => world.truncate(id, 4),
  "a fallocate": (world, _id, handle) => createFileSystem(world.context).allocate(CALLER, handle, 0, 0, 8),
  "another write": (world, _id, handle) => world.write(handle, 2, Buffer.from("ra")),
};
/** Each way that a write which began before may end during the flow, and let the next ones pass. */
function duringWrite(flow: Flow, lead: number): Flow {
  return async (world, id, handle) => {
    const writing = world.write(handle, 2, Buffer.from("ra"));
    for (let i = 0; i < lead; i += 1) await undefined;
    await Promise.all([writing, flow(world, id, handle)]);
  };
}
for (const name of ["a snapshot", "an fsync"]) {
  const flow = FLOWS[name];
  if (flow === undefined) throw new Error(name);
  for (let lead = 0; lead < 12; lead += 1)
    FLOWS[`${name}, ${lead} turns into another write,`] = duringWrite(flow, lead);
}

for (const [name, flow] of Object.entries(FLOWS)) {
  test(`a write at any moment of ${name} is not missed`, async () => {
    const world = await createBytesWorld({}, { turns: () => 2 });
    let passed = 0;
    for (let turn = 0, isOver = false; !isOver; turn += 1) {
      const { id, handle } = await written(world);
      const cacheFile = world.context.cacheFiles.get(world.inode(id).kernelNodeId);
      if (cacheFile === undefined) throw new Error("not open");
      let syncs = 0;
      const { sync } = cacheFile.disk.file;
      const counted = () => {
        syncs += 1;
        return sync.call(cacheFile.disk.file);
      };
      Object.assign(cacheFile.disk.file, { sync: counted });
      // A snapshot of what was written just now would not count.
      await world.clock.advance(50);
      let isDone = false;
      const running = flow(world, id, handle).then(() => {
        isDone = true;
      });
      for (let i = 0; i < turn; i += 1) await undefined;
      isOver = isDone;
      const syncsBefore = syncs;
      const hasPassed = passes(world, handle);
      if (hasPassed) expectTold(world, id);
      await running;
      const { synced } = world.inode(id);
      if (hasPassed) {
        passed += 1;
        expect(synced === "durable" && syncs === syncsBefore, `called synced, written at turn ${turn}`).toBe(false);
      } else await world.write(handle, 0, LATER);
      const { hash } = world.inode(id);
      const now = await world.readAll(world.inode(id));
      expect([null, hashOf(now)], `snapshot, written at turn ${turn}`).toContain(hash);
      expect(Buffer.from(now.subarray(0, 2)).toString()).toBe("LA");
      await world.close(handle);
      expect(world.inode(id)).toMatchObject({ content: "dirty", size: now.length });
      expect(await world.context.snapshots.take(id, CALLER.signal)).toBe("taken");
      expect(world.inode(id).hash).toBe(hashOf(now));
    }
    // Before it begins, if not later.
    expect(passed).toBeGreaterThan(0);
  });
}

test("a write on the fast path is found after a crash, and after power loss is not taken for whole", async () => {
  const world = await createBytesWorld();
  const { id, handle } = await written(world);
  await createFileSystem(world.context).fsync(CALLER, handle, false);
  expect(world.inode(id).synced).toBe("durable");
  expect(passes(world, handle)).toBe(false);
  await world.write(handle, 0, FIRST);
  expect(passes(world, handle)).toBe(true);
  const next = world.crash();
  await next.recover();
  expect(next.inode(id)).toMatchObject({ content: "dirty", hash: null, size: LATER.length });
  expect(Buffer.from(await next.readAll(next.inode(id))).toString()).toBe("LATER");
});
