/** Content that grew from a version: what of that comes from the gateway is known to be right before it is part of another one. */
import { expect, test } from "vitest";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { entryId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern } from "../support/bytes-world.ts";

const MIB = 1024 * 1024;
const SIZES = [3_000, 3 * MIB] as const;
const MORE = Buffer.from("more");
const WRONG = "downloaded bytes are not the version's";
const READ_ONLY = { read: true, write: false, append: false, truncate: false, exclusive: false };

async function during<T>(world: BytesWorld, work: Promise<T>): Promise<T> {
  work.catch(() => {});
  await world.clock.advance(2_000);
  return work;
}

const snapshot = (world: BytesWorld, { id }: Inode) => during(world, world.context.snapshots.take(id, CALLER.signal));

async function snapshotBytes(world: BytesWorld, { id }: Inode): Promise<Buffer> {
  const snapshot = world.context.metadata.snapshots.newestOf(id) ?? expect.unreachable("no snapshot");
  const parts: Uint8Array[] = [];
  for await (const part of world.context.snapshotFiles.source(snapshot).read()) parts.push(part);
  return Buffer.concat(parts);
}

async function writeAt(world: BytesWorld, inode: Inode, offset: number, bytes: Uint8Array): Promise<void> {
  const handle = await world.open(world.inode(inode.id), { write: true });
  await world.write(handle, offset, bytes);
  await world.close(handle);
}

/** How many bytes of a content of this size the gateway was asked for. */
const asked = ({ gateway }: BytesWorld, size: number) =>
  gateway.calls.reduce((sum, { start, end }) => sum + Math.min(end, size) - start, 0);

const expected = (content: Uint8Array, offset: number, bytes: Uint8Array) => {
  const all = Buffer.alloc(Math.max(content.length, offset + bytes.length));
  all.set(content);
  all.set(bytes, offset);
  return all;
};

/** Each what is done to a file nothing of which is here, and what is to come of it. */
const CHANGES: Record<string, (world: BytesWorld, inode: Inode, content: Uint8Array) => Promise<Uint8Array>> = {
  async "something is appended"(world, inode, content) {
    await writeAt(world, inode, content.length, MORE);
    return expected(content, content.length, MORE);
  },
  async "a byte in it is written"(world, inode, content) {
    await writeAt(world, inode, 10, MORE.subarray(0, 1));
    return expected(content, 10, MORE.subarray(0, 1));
  },
  async "its beginning is written"(world, inode, content) {
    await writeAt(world, inode, 0, MORE);
    return expected(content, 0, MORE);
  },
  async "it is cut short"(world, inode, content) {
    await world.truncate(inode.id, content.length - 1);
    return content.subarray(0, content.length - 1);
  },
  async "most of it is cut away"(world, inode, content) {
    await world.truncate(inode.id, 100);
    return content.subarray(0, 100);
  },
  async "it is cut short, and made longer"(world, inode, content) {
    await world.truncate(inode.id, 1_000);
    await world.truncate(inode.id, content.length + 50);
    return expected(content.subarray(0, 1_000), content.length + 49, Buffer.of(0));
  },
};

const CASES = SIZES.flatMap((size) => Object.keys(CHANGES).map((name) => [name, size] as const));

async function changed(name: string, size: number) {
  const world = await createBytesWorld();
  const content = pattern(size);
  const inode = world.addRemote(content);
  const then = (await CHANGES[name]?.(world, inode, content)) ?? expect.unreachable("no such change");
  expect(world.gateway.calls).toEqual([]);
  return { world, inode, content, then };
}

async function isNotSentWrong(world: BytesWorld, inode: Inode, then: Uint8Array): Promise<void> {
  world.gateway.lies = 1;
  await expect(snapshot(world, inode)).rejects.toThrow(WRONG);
  expect(world.context.metadata.snapshots.newestOf(inode.id)).toBeUndefined();
  expect(await snapshot(world, inode)).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
  expect(world.inode(inode.id).hash).toBe(hashOf(then));
}

test.each(CASES)("%s (%i bytes): damaged on the way, the rest is not sent but fetched again", async (name, size) => {
  const { world, inode, then } = await changed(name, size);
  await isNotSentWrong(world, inode, then);
});

test.each(CASES)("%s (%i bytes): after a crash it is checked too", async (name, size) => {
  const { world, inode, then } = await changed(name, size);
  const next = world.crash();
  await next.recover();
  await isNotSentWrong(next, inode, then);
});

test.each(CASES)("%s (%i bytes): no byte is asked for twice", async (name, size) => {
  const { world, inode, then } = await changed(name, size);
  expect(await snapshot(world, inode)).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
  expect(asked(world, size)).toBe(size);
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)).toMatchObject({ missing: [], unverified: [] });
});

test.each(SIZES)("of a version that is not the head any more, too (%i bytes)", async (size) => {
  const { world, inode, then } = await changed("something is appended", size);
  const { nodes, entries } = world.context.metadata;
  const [entry] = entries.ofInode(inode.id);
  const row = nodes.ofEntry(entry?.id ?? entryId(0)) ?? expect.unreachable("no row");
  if (row.base !== null) nodes.update(row.id, { base: { ...row.base, head: "later", hash: hashOf(MORE) } });
  const next = world.crash();
  await next.recover();
  await isNotSentWrong(next, inode, then);
});

test.each(SIZES)("a gateway that tells no hash is believed (%i bytes)", async (size) => {
  const world = await createBytesWorld();
  const content = pattern(size);
  const inode = world.addRemote(content, { hash: null });
  await writeAt(world, inode, 10, MORE);
  expect(await snapshot(world, inode)).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(expected(content, 10, MORE)));
});

test.each([
  [true, 10],
  [false, 10],
  [false, 0],
])("who reads what he has written to is shown no damaged bytes (has it open: %s, at byte %i)", async (isOpen, at) => {
  const world = await createBytesWorld();
  const content = pattern(3_000);
  const inode = world.addRemote(content);
  let handle = await world.open(inode, { write: true });
  await world.write(handle, at, MORE);
  if (!isOpen) {
    await world.close(handle);
    handle = await world.open(world.inode(inode.id));
  }
  world.gateway.lies = 1;
  await expect(during(world, world.read(handle, 0, 3_000))).rejects.toThrow(WRONG);
  const read = await during(world, world.read(handle, 0, 3_000));
  expect(hashOf(read)).toBe(hashOf(expected(content, at, MORE)));
});

test("what came of a large file before it was written to was not checked: where it is wrong it comes again", async () => {
  const world = await createBytesWorld();
  const content = pattern(5 * MIB);
  const inode = world.addRemote(content);
  const reader = await world.open(inode);
  world.gateway.lies = 1;
  await during(world, world.read(reader, 0, 1000));
  await world.close(reader);
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)?.missing).not.toBe(`[0,${content.length}]`);
  await writeAt(world, inode, content.length, MORE);
  const next = world.crash();
  await next.recover();
  await expect(snapshot(next, inode)).rejects.toThrow(WRONG);
  expect(await snapshot(next, inode)).toBe("taken");
  expect(hashOf(await snapshotBytes(next, inode))).toBe(hashOf(expected(content, content.length, MORE)));
});

test("what was fetched and checked before it was written to does not come again", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const inode = world.addRemote(content);
  await during(world, world.readAll(inode));
  const { length } = world.gateway.calls;
  await writeAt(world, inode, 10, MORE);
  expect(await snapshot(world, inode)).toBe("taken");
  expect(world.gateway.calls.length).toBe(length);
});

test("what is written while the version is read to its hash stays, right or wrong", async () => {
  const world = await createBytesWorld();
  const content = pattern(4 * MIB);
  const inode = world.addRemote(content);
  const handle = await world.open(inode, { write: true });
  await world.write(handle, content.length, MORE);
  // Some of it came before, unchecked; a program writes there.
  await during(world, world.read(handle, 2 * MIB, 1000));
  world.gateway.lies = 1;
  world.gateway.hold();
  const failed = world.context.snapshots.take(inode.id, CALLER.signal).catch(String);
  await world.clock.settle();
  await world.write(handle, 2 * MIB + 10, MORE);
  await world.write(handle, MIB, MORE);
  world.gateway.release();
  const late = world.write(handle, 3 * MIB, MORE);
  expect(await during(world, failed)).toContain(WRONG);
  await late;
  await world.close(handle);
  let then = expected(content, content.length, MORE);
  for (const place of [MIB, 2 * MIB + 10, 3 * MIB]) then = expected(then, place, MORE);
  expect(await snapshot(world, inode)).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
});

test("broken off, it goes on where it was, and is one check", async () => {
  const world = await createBytesWorld();
  const content = pattern(4 * MIB);
  const inode = world.addRemote(content);
  await writeAt(world, inode, 10, MORE);
  world.gateway.breaks = [2 * MIB];
  const taking = world.context.snapshots.take(inode.id, CALLER.signal);
  await world.clock.advance(60_000);
  expect(await taking).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(expected(content, 10, MORE)));
  expect(asked(world, content.length)).toBeLessThan(2 * content.length);
});

test("broken off after its last byte, what was read to its hash is not asked for again", async () => {
  const { world, inode, then } = await changed("its beginning is written", 3 * MIB);
  const handle = await world.open(world.inode(inode.id));
  await during(world, world.read(handle, 4, 3 * MIB));
  await world.close(handle);
  world.gateway.calls.length = 0;
  world.gateway.breaks = [MORE.length];
  const taking = world.context.snapshots.take(inode.id, CALLER.signal);
  await world.clock.advance(60_000);
  expect(await taking).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
  expect(world.gateway.calls.length).toBe(1);
});

test.each(SIZES)("a version that is sent as that of another node is checked too (%i bytes)", async (size) => {
  const world = await createBytesWorld();
  const content = pattern(size);
  const inode = world.addRemote(content);
  world.context.network.cannotRefer(inode.originVersion ?? "");
  const { nodes, entries } = world.context.metadata;
  const [entry] = entries.ofInode(inode.id);
  const row = nodes.ofEntry(entry?.id ?? entryId(0)) ?? expect.unreachable("no row");
  if (row.base !== null) nodes.update(row.id, { base: { ...row.base, hash: hashOf(MORE) } });
  await isNotSentWrong(world, inode, content);
});

test.each(SIZES)("two who send it ask for each byte once (%i bytes)", async (size) => {
  const { world, inode, then } = await changed("a byte in it is written", size);
  const [one, other] = [snapshot(world, inode), snapshot(world, inode)];
  expect([await one, await other]).toContain("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
  expect(asked(world, size)).toBe(size);
});

test("who was interrupted and asks again goes on with what is being read", async () => {
  const { world, inode, then } = await changed("a byte in it is written", 3 * MIB);
  const reader = await world.open(world.inode(inode.id));
  await during(world, world.read(reader, 0, 3 * MIB));
  const { length } = world.gateway.calls;
  const given = new AbortController();
  world.gateway.hold();
  const first = world.context.snapshots.take(inode.id, given.signal).catch(String);
  await world.clock.settle();
  given.abort();
  expect(await during(world, first)).toContain("interrupted");
  const second = world.context.snapshots.take(inode.id, CALLER.signal);
  await world.clock.settle();
  world.gateway.release();
  expect(await during(world, second)).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
  expect(world.gateway.calls.slice(length)).toMatchObject([{ start: 10, end: 11 }]);
  await world.close(reader);
});

test("what was read of a version that is another node's by now, too, is remembered", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const inode = world.addRemote(content);
  await during(world, (async () => world.close(await world.open(inode)))());
  // A reference to it was made: the content is clean, what is missing of it comes from where it came from.
  world.context.metadata.inodes.update(inode.id, { originNode: "another", originVersion: "a version of another" });
  // By its hash it is checked as ever.
  world.gateway.lies = 1;
  await expect(during(world, world.readAll(world.inode(inode.id)))).rejects.toThrow(WRONG);
  const read = await during(world, world.readAll(world.inode(inode.id)));
  expect(hashOf(read)).toBe(hashOf(content));
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)?.missing).toEqual([]);
});

test("the kernel forgets what was shown of a version that is found to be wrong", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(3 * MIB));
  const handle = await world.open(inode, { write: true });
  await world.write(handle, 10, MORE);
  world.gateway.lies = 1;
  await during(world, world.read(handle, 0, 1000));
  await world.close(handle);
  const keepsCache = async () => {
    const opened = await createFileSystem(world.context).open(CALLER, inode.kernelNodeId, READ_ONLY);
    await world.close(opened.handle);
    return opened.keepCache;
  };
  expect(await keepsCache()).toBe(true);
  await expect(snapshot(world, inode)).rejects.toThrow(WRONG);
  expect([await keepsCache(), await keepsCache()]).toEqual([false, true]);
});
