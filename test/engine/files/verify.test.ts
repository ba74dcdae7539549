/** What it costs to know that what changed content has of a version is that version's, and what happens meanwhile. */
import { expect, test } from "vitest";
import type { QueueItem } from "../../../src/engine/api/index.ts";
import { listQueue } from "../../../src/engine/ops/index.ts";
import { NO_RANGES, totalBytes } from "../../../src/lib/ranges.ts";
import { entryId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern } from "../support/bytes-world.ts";
import { nodeOf } from "../support/rows-world.ts";

const MIB = 1024 * 1024;
const SIZE = 5 * MIB;
const CONTENT = pattern(SIZE);
const MORE = Buffer.from("more");
const WRONG = "downloaded bytes are not the version's";
const AGAIN = "the local bytes are not those of their version, which is fetched again";

async function during<T>(world: BytesWorld, work: Promise<T>, milliseconds = 2_000): Promise<T> {
  work.catch(() => {});
  await world.clock.advance(milliseconds);
  return work;
}

const snapshot = (world: BytesWorld, { id }: Inode) => during(world, world.context.snapshots.take(id, CALLER.signal));
const rowOf = ({ context }: BytesWorld, { kernelNodeId }: Inode) => context.metadata.cacheFiles.get(kernelNodeId);

async function snapshotBytes(world: BytesWorld, { id }: Inode): Promise<Buffer> {
  const snapshot = world.context.metadata.snapshots.newestOf(id) ?? expect.unreachable("no snapshot");
  const parts: Uint8Array[] = [];
  for await (const part of world.context.snapshotFiles.source(snapshot).read()) parts.push(part);
  return Buffer.concat(parts);
}

async function writeAt(world: BytesWorld, inode: Inode, ...offsets: number[]): Promise<void> {
  const handle = await world.open(world.inode(inode.id), { write: true });
  for (const offset of offsets) await world.write(handle, offset, MORE);
  await world.close(handle);
}

/** CONTENT with MORE at each of these places. */
function withMoreAt(...offsets: number[]): Buffer {
  const all = Buffer.alloc(Math.max(SIZE, ...offsets.map((offset) => offset + MORE.length)));
  all.set(CONTENT);
  for (const offset of offsets) all.set(MORE, offset);
  return all;
}

/** All of it was fetched, and a program wrote to it before anybody had checked it. */
async function allHere(...offsets: number[]) {
  const world = await createBytesWorld();
  const inode = world.addRemote(CONTENT);
  const handle = await world.open(inode, { write: true });
  // Appended: nothing of the version is overwritten.
  await world.write(handle, SIZE, MORE);
  await during(world, world.read(handle, 0, SIZE));
  for (const offset of offsets) await world.write(handle, offset, MORE);
  await world.close(handle);
  await world.clock.advance(1_000);
  world.gateway.calls.length = 0;
  return { world, inode };
}

async function isSnapshotAs(world: BytesWorld, inode: Inode, then: Uint8Array): Promise<void> {
  expect(await snapshot(world, inode)).toBe("taken");
  expect(hashOf(await snapshotBytes(world, inode))).toBe(hashOf(then));
  expect(rowOf(world, inode)).toMatchObject({ missing: [], unverified: [] });
}

/** A byte of the local file is not what it was. */
async function damage(world: BytesWorld, inode: Inode, at: number): Promise<void> {
  const file = await world.files.open(world.context.paths.cacheFile(inode.kernelNodeId), "r+");
  await file.write(Buffer.of((CONTENT[at] ?? 0) ^ 1), at);
  await file.close();
}

test("what was appended to is checked without a request", async () => {
  const { world, inode } = await allHere();
  expect(rowOf(world, inode)).toMatchObject({ missing: [], unverified: [0, SIZE], originSize: SIZE });
  await isSnapshotAs(world, inode, withMoreAt(SIZE));
  expect(world.gateway.calls).toEqual([]);
});

test("of what was appended to, only what is missing is asked for", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(CONTENT);
  const handle = await world.open(inode);
  await during(world, world.read(handle, 0, MIB));
  await world.close(handle);
  const missing = rowOf(world, inode)?.missing;
  expect(missing).not.toEqual([]);
  const [from = 0] = missing ?? [];
  world.gateway.calls.length = 0;
  await writeAt(world, inode, SIZE);
  await isSnapshotAs(world, inode, withMoreAt(SIZE));
  expect(Math.min(...world.gateway.calls.map(({ start }) => start))).toBe(from);
  expect(world.gateway.calls.reduce((sum, { start, end }) => sum + end - start, 0)).toBe(SIZE - from);
});

test("only what a program has overwritten is asked for to check the rest", async () => {
  const { world, inode } = await allHere(1000, 3 * MIB);
  await isSnapshotAs(world, inode, withMoreAt(1000, 3 * MIB, SIZE));
  const ranges = world.gateway.calls.map(({ start, end }) => [start, end - start]);
  expect(ranges).toEqual([
    [1000, MORE.length],
    [3 * MIB, MORE.length],
  ]);
});

test("a damaged byte in the middle is found, all that is not a program's comes again", async () => {
  const { world, inode } = await allHere(1000);
  await damage(world, inode, 2 * MIB);
  await expect(snapshot(world, inode)).rejects.toThrow(WRONG);
  expect(rowOf(world, inode)).toMatchObject({ missing: [0, 1000, 1004, SIZE], unverified: [0, 1000, 1004, SIZE] });
  expect(world.complaints).toContain(AGAIN);
  const next = world.crash();
  await next.recover();
  await isSnapshotAs(next, inode, withMoreAt(1000, SIZE));
});

test("after a restart, what came is not asked for again", async () => {
  const size = 40 * MIB;
  const content = pattern(size);
  const world = await createBytesWorld();
  const inode = world.addRemote(content);
  await writeAt(world, inode, size);
  // The link breaks, again and again, until the process ends.
  world.gateway.breaks = [5 * MIB, 9 * MIB, 8 * MIB, ...Array.from({ length: 40 }, () => 0)];
  const failed = world.context.snapshots.take(inode.id, CALLER.signal);
  await expect(during(world, failed, 60_000)).rejects.toThrow();
  const missing = totalBytes(rowOf(world, inode)?.missing ?? NO_RANGES);
  expect(missing).toBeLessThan(size - 4 * MIB);
  const next = world.crash();
  await next.recover();
  Object.assign(next.gateway, { breaks: [] });
  next.gateway.calls.length = 0;
  expect(await snapshot(next, inode)).toBe("taken");
  const all = Buffer.concat([content, MORE]);
  expect(hashOf(await snapshotBytes(next, inode))).toBe(hashOf(all));
  expect(next.gateway.calls.reduce((sum, { start, end }) => sum + end - start, 0)).toBe(missing);
});

test("what is here is read offline, also by who opens it after a restart", async () => {
  const { world, inode } = await allHere(1000);
  for (let each = world, count = 0; count < 2; each = each.crash(), count += 1) {
    await each.recover();
    each.gateway.failures = Array.from({ length: 50 }, () => "offline");
    const handle = await each.open(each.inode(inode.id));
    expect(hashOf(await during(each, each.read(handle, 0, 2 * SIZE)))).toBe(hashOf(withMoreAt(1000, SIZE)));
    each.gateway.failures = [];
    await each.close(handle);
    expect(rowOf(each, inode)?.unverified).not.toEqual([]);
  }
  expect(world.gateway.calls).toEqual([]);
});

test("what is written while it is checked stays, wherever the check is by then", async () => {
  const { world, inode } = await allHere(2 * MIB);
  const handle = await world.open(world.inode(inode.id), { write: true });
  world.gateway.hold();
  const taking = world.context.snapshots.take(inode.id, CALLER.signal);
  await world.clock.settle();
  // The check waits at the place that was overwritten.
  expect(world.gateway.calls.map(({ start }) => start)).toEqual([2 * MIB]);
  const places = [MIB, 2 * MIB - 2, 2 * MIB + 2, 3 * MIB, 4 * MIB];
  for (const place of places) await world.write(handle, place, MORE);
  world.gateway.release();
  await during(world, taking);
  await world.close(handle);
  await isSnapshotAs(world, inode, withMoreAt(2 * MIB, ...places, SIZE));
});

test("a write that is on its way while its place is read is not taken for a damaged byte", async () => {
  const { world, inode } = await allHere();
  const handle = await world.open(world.inode(inode.id), { write: true });
  const file = world.context.cacheFiles.get(inode.kernelNodeId)?.disk.file ?? expect.unreachable("not open");
  const { write, read } = file;
  // The write has put its bytes there, and has yet to say so, when the check comes to them.
  let isRead = false;
  const reading = new Promise<void>((resolve) => {
    Object.assign(file, {
      write: async (bytes: Uint8Array, at: number) => {
        await write.call(file, bytes, at);
        for (let turn = 0; turn < 200 && !isRead; turn += 1) await undefined;
      },
      read: (buffer: Uint8Array, from: number, length: number, at: number) => {
        if (at <= MIB && MIB < at + length) isRead = true;
        resolve();
        return read.call(file, buffer, from, length, at);
      },
    });
  });
  const taking = world.context.snapshots.take(inode.id, CALLER.signal);
  const late = world.write(handle, MIB, MORE);
  await during(world, Promise.all([reading, taking, late]));
  await world.close(handle);
  expect(world.complaints).toEqual([]);
  await isSnapshotAs(world, inode, withMoreAt(MIB, SIZE));
});

test("a write after which the process died before the rows heard of it takes no other with it", async () => {
  const { world, inode } = await allHere();
  const handle = await world.open(world.inode(inode.id), { write: true });
  await world.write(handle, MIB, MORE);
  let died: BytesWorld | undefined;
  const step = (label: string) => {
    if (label === "write: bytes in the file") died ??= world.crash();
  };
  Object.assign(world.context.runtime, { step });
  await world.write(handle, 2 * MIB, MORE).catch(() => {});
  const next = died ?? expect.unreachable("no write");
  await next.recover();
  // It was not acknowledged; for all that is known, its bytes are damage.
  await expect(snapshot(next, inode)).rejects.toThrow(WRONG);
  await isSnapshotAs(next, inode, withMoreAt(MIB, SIZE));
});

test("what was acknowledged is in no row the origin's, also where the row could not be told at first", async () => {
  const { world, inode } = await allHere();
  const handle = await world.open(world.inode(inode.id), { write: true });
  await world.write(handle, SIZE, MORE);
  const { cacheFiles } = world.context.metadata;
  const { update } = cacheFiles;
  const fail = () => {
    throw new Error("no room for a row");
  };
  Object.assign(cacheFiles, { update: fail });
  await expect(world.write(handle, MIB, MORE)).rejects.toThrow("no room for a row");
  Object.assign(cacheFiles, { update });
  await world.write(handle, MIB, MORE);
  expect(rowOf(world, inode)?.unverified).toEqual([0, MIB, MIB + MORE.length, SIZE]);
  Object.assign(cacheFiles, { update: fail });
  await expect(world.truncate(inode.id, 4 * MIB, handle)).rejects.toThrow("no room for a row");
  await expect(world.write(handle, 4 * MIB, MORE)).rejects.toThrow("no room for a row");
  Object.assign(cacheFiles, { update });
  await world.truncate(inode.id, SIZE, handle);
  expect(rowOf(world, inode)?.unverified).toEqual([0, MIB, MIB + MORE.length, 4 * MIB]);
  const next = world.crash();
  await next.recover();
  const then = withMoreAt(MIB, 4 * MIB).fill(0, 4 * MIB + MORE.length);
  await isSnapshotAs(next, inode, then);
});

test.each([
  { size: 66 * MIB, left: 100, isChecked: false },
  { size: 66 * MIB, left: 2 * MIB, isChecked: true },
])("no more is fetched for a check than it is worth: $left of $size bytes", async ({ size, left, isChecked }) => {
  const world = await createBytesWorld();
  world.gateway.chunk = MIB;
  const content = pattern(size);
  const inode = world.addRemote(content);
  await world.truncate(inode.id, left);
  await isSnapshotAs(world, inode, content.subarray(0, left));
  const asked = world.gateway.calls.reduce((sum, { start, end }) => sum + end - start, 0);
  expect(asked).toBe(isChecked ? size : left);
});

test.each([false, true])("a gateway that ignores ranges, known before: %s", async (isKnown) => {
  const { world, inode } = await allHere(1000, 3 * MIB);
  world.gateway.ignoresRanges = true;
  world.context.fileState.ignoresRanges = isKnown;
  await damage(world, inode, 4 * MIB);
  await expect(snapshot(world, inode)).rejects.toThrow(WRONG);
  // One answer serves both places.
  expect(world.gateway.calls.length).toBe(1);
  await isSnapshotAs(world, inode, withMoreAt(1000, 3 * MIB, SIZE));
  expect(world.gateway.running).toBe(0);
});

test("an answer that ends too early is asked for again from there", async () => {
  const { world, inode } = await allHere();
  await world.truncate(inode.id, 3 * MIB);
  world.gateway.shorts = [MIB];
  expect(await during(world, world.context.snapshots.take(inode.id, CALLER.signal), 10_000)).toBe("taken");
  expect(world.gateway.calls.map(({ start, end }) => [start, end])).toEqual([
    [3 * MIB, SIZE],
    [4 * MIB, SIZE],
  ]);
});

test("of a version that nobody has any more what is here is sent unchecked", async () => {
  const { world, inode } = await allHere(1000);
  world.gateway.versions.clear();
  await isSnapshotAs(world, inode, withMoreAt(1000, SIZE));
  expect(world.complaints).toEqual([
    expect.stringMatching("^the local bytes of a version that is gone cannot be checked"),
  ]);
});

test("a gateway that does not find for a moment what it names is not believed", async () => {
  const { world, inode } = await allHere(1000);
  await damage(world, inode, MIB);
  const { gateway } = world;
  gateway.listed = [...gateway.versions.keys()];
  gateway.failures = ["notFound"];
  await expect(snapshot(world, inode)).rejects.toThrow("told to fail: notFound");
  expect(rowOf(world, inode)?.unverified).not.toEqual([]);
  await expect(snapshot(world, inode)).rejects.toThrow(WRONG);
  await isSnapshotAs(world, inode, withMoreAt(1000, SIZE));
});

test("what it goes on to name and not to have keeps nothing from being sent", async () => {
  const { world, inode } = await allHere(1000);
  const { gateway, context } = world;
  gateway.listed = [...gateway.versions.keys()];
  gateway.versions.clear();
  const [entry] = context.metadata.entries.ofInode(inode.id);
  const row = context.metadata.nodes.ofEntry(entry?.id ?? entryId(0)) ?? expect.unreachable("no row");
  for (const tries of [1, 2, 3, 4]) {
    const error = await snapshot(world, inode).catch((thrown: unknown) => thrown);
    expect(context.readFailures.couldNotRead(row, world.inode(inode.id), error)).toBe(tries);
  }
  await isSnapshotAs(world, inode, withMoreAt(1000, SIZE));
});

test.each(["read", "closed"])("why an open file cannot be read is told until it is %s", async (ends) => {
  const { world, inode } = await allHere(1000);
  const { gateway, context, clock } = world;
  const why = async () => {
    const items: QueueItem[] = [];
    const list = async () => {
      for await (const each of listQueue(context, () => [], 10)) items.push(...each);
    };
    await during(world, list(), 0);
    return items.map((item) => item.why).join();
  };
  const { entries, nodes } = context.metadata;
  const [root] = entries.ofInode(ROOT_INODE);
  nodes.create(born(root?.id ?? null, nodeOf("root", { kind: "folder", parentId: null, name: "" })));
  gateway.failures = ["forbidden"];
  const handle = await world.open(world.inode(inode.id), { write: true });
  await world.write(handle, SIZE, MORE);
  expect(await why()).toMatch(/^still being written/);
  await clock.advance(31_000);
  expect(await why()).toMatch(/^its content could not be read 1 times: /);
  if (ends === "closed") {
    await world.close(handle);
    expect(await why()).not.toMatch("could not be read");
  } else {
    await clock.advance(31_000);
    expect(context.fileState.unreadable.size).toBe(0);
  }
});

test("a process that dies with the check over, and the rows not told, has it made again", async () => {
  const { world, inode } = await allHere(1000);
  let died: BytesWorld | undefined;
  const step = (label: string) => {
    if (label === "verify: synced") died ??= world.crash();
  };
  Object.assign(world.context.runtime, { step });
  await snapshot(world, inode).catch(() => {});
  const next = died ?? expect.unreachable("it was not checked");
  await next.recover();
  next.gateway.calls.length = 0;
  await isSnapshotAs(next, inode, withMoreAt(1000, SIZE));
  expect(next.gateway.calls.length).toBe(1);
});

test("what a power cut kept of a write, and the rows had not heard of, comes again as the version's", async () => {
  const { world, inode } = await allHere();
  await world.context.syncRows();
  await writeAt(world, inode, MIB);
  const next = await world.powerLoss();
  await expect(snapshot(next, inode)).rejects.toThrow(WRONG);
  await isSnapshotAs(next, inode, withMoreAt(SIZE));
  expect(next.complaints).toEqual([
    "content that was never synced does not replace the gateway's after power loss",
    AGAIN,
    `fetching failed: ${WRONG}`,
  ]);
});

test("a file with unverified ranges is not passthrough", async () => {
  const world = await createBytesWorld({}, { isPassing: true });
  const inode = world.addRemote(CONTENT);
  const handle = await world.open(inode, { write: true });
  await world.write(handle, SIZE, MORE);
  await during(world, world.read(handle, 0, SIZE));
  await world.close(handle);
  await world.clock.advance(1_000);
  const isPassed = async (each: BytesWorld) => {
    const opened = await each.open(each.inode(inode.id), { write: true });
    const {
      passthrough: { backingId },
    } = each.context.cacheFiles.get(inode.kernelNodeId) ?? expect.unreachable("not open");
    await each.read(opened, 0, 10);
    const moves = each.fastPath.read(opened, 10, 0) !== undefined;
    await each.close(opened);
    return [backingId !== undefined, moves];
  };
  const next = world.crash();
  await next.recover();
  expect(await isPassed(next)).toEqual([false, false]);
  await isSnapshotAs(next, inode, withMoreAt(SIZE));
  expect((await isPassed(next))[0]).toBe(true);
});
