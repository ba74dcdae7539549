/** Snapshots, the uploads that read them, and writers that arrive meanwhile. */

import { parse } from "node:path";
import { expect, test } from "vitest";
import { handleId } from "../../../src/engine/api/index.ts";
import type { Request } from "../../../src/engine/core/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { minus, rowTime } from "../../../src/lib/clocks.ts";
import { EMPTY_HASH } from "../../../src/lib/empty-hash.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import type { Attempt } from "../../../src/metadata/attempts.ts";
import { type InodeId, inodeId, snapshotId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern } from "../support/bytes-world.ts";

const TEXT = Buffer.from("written here");

async function written(world: BytesWorld, bytes: Uint8Array = TEXT): Promise<InodeId> {
  const { inode, handle } = await world.create();
  await world.write(handle, 0, bytes);
  await world.close(handle);
  return inode.id;
}

const snapshot = (world: BytesWorld, id: InodeId) => world.context.snapshots.take(id, CALLER.signal);
const newest = (world: BytesWorld, id: InodeId) => world.context.metadata.snapshots.newestOf(id);

async function bytesOf(world: BytesWorld, id: InodeId): Promise<Buffer> {
  const snapshot = newest(world, id);
  if (snapshot === undefined) throw new Error("no snapshot");
  const parts: Uint8Array[] = [];
  for await (const part of world.context.snapshotFiles.source(snapshot).read()) parts.push(part);
  return Buffer.concat(parts);
}

/** As the write-back loop makes one. */
function attempt(world: BytesWorld, id: InodeId, key: string): Attempt<Request> {
  const { metadata } = world.context;
  const [entry] = metadata.entries.ofInode(id);
  const row = entry === undefined ? undefined : metadata.nodes.ofEntry(entry.id);
  const snapshot = newest(world, id);
  if (row === undefined || snapshot === undefined) throw new Error("nothing to send");
  const { hash, size } = snapshot;
  const request: Request = { do: "upload", parent: "root", name: "a", hash, size, attributes: {} };
  return metadata.attempts.create({
    node: row.id,
    key,
    request,
    snapshot: snapshot.id,
    nextAt: rowTime(0),
    createdAt: rowTime(0),
  });
}

test("closed, the cache file itself is the snapshot", async () => {
  const world = await createBytesWorld();
  const id = await written(world);
  expect(await snapshot(world, id)).toBe("taken");
  const inode = world.inode(id);
  expect(newest(world, id)).toMatchObject({
    kernelNodeId: inode.kernelNodeId,
    changes: inode.changes,
    size: TEXT.length,
    synced: 1,
  });
  expect(inode.hash).toBe(hashOf(TEXT));
  expect(await bytesOf(world, id)).toEqual(TEXT);
  expect(world.files.openHandles()).toBe(0);
});

test("an empty file without a cache file needs none", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.close(handle);
  expect(await snapshot(world, inode.id)).toBe("taken");
  expect(world.inode(inode.id)).toMatchObject({ hash: EMPTY_HASH, size: 0 });
  expect(newest(world, inode.id)).toBeUndefined();
});

test("written back to what it was, it is clean again", async () => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(1000));
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, pattern(1000).subarray(0, 500));
  await world.close(handle);
  expect(world.inode(id).content).toBe("dirty");
  expect(await snapshot(world, id)).toBe("clean");
  expect(world.inode(id)).toMatchObject({ content: "clean", hash: hashOf(pattern(1000)) });
  expect(newest(world, id)).toBeUndefined();
});

test("open for writing, the snapshot is a copy; a change after it makes the row dirty anew", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await world.clock.advance(1000);
  expect(await snapshot(world, inode.id)).toBe("taken");
  const { changes } = world.inode(inode.id);
  expect(newest(world, inode.id)).toMatchObject({ kernelNodeId: null, changes });
  await world.write(handle, 0, Buffer.from("WRITTEN"));
  expect(world.inode(inode.id)).toMatchObject({ changes: changes + 1, hash: null });
  expect(await bytesOf(world, inode.id)).toEqual(TEXT);
});

test("a write during a snapshot is in it, or is another change; also after a crash", async () => {
  const after = Buffer.from("wriXYen here");
  const kinds = new Set<string>();
  for (let turns = 0; turns < 150; turns += 1) {
    const world = await createBytesWorld({}, { turns: () => 5 });
    const { inode, handle } = await world.create();
    await world.write(handle, 0, TEXT);
    await world.clock.advance(1000);
    const taking = snapshot(world, inode.id);
    for (let turn = 0; turn < turns; turn += 1) await undefined;
    await world.write(handle, 3, Buffer.from("XY"));
    const result = await taking;
    const made = newest(world, inode.id);
    const { hash, changes } = world.inode(inode.id);
    const isIn = made?.hash === hashOf(after);
    kinds.add(made === undefined ? result : isIn ? "in it" : "another");
    expect([hash, made?.changes === changes], `${result} after ${turns} turns`).toEqual([
      isIn ? made.hash : null,
      isIn,
    ]);
    if (made !== undefined) expect(hashOf(await bytesOf(world, inode.id))).toBe(made.hash);
    const next = world.crash();
    await next.recover();
    await next.clock.advance(1000);
    expect(await snapshot(next, inode.id)).toBe("taken");
    expect(await bytesOf(next, inode.id)).toEqual(after);
  }
  expect([...kinds].toSorted()).toEqual(["another", "busy", "in it"]);
});

test("what is written once the copy was made does not make it void; the snapshot is as old as the copy", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await world.clock.advance(1000);
  const { files } = world.context.runtime;
  const at = world.clock.wallClock();
  const hash: typeof files.hash = async (path) => {
    await world.clock.advance(500);
    await world.write(handle, 0, Buffer.from("WRITTEN"));
    return files.hash(path);
  };
  Object.assign(world.context, { runtime: { ...world.context.runtime, files: { ...files, hash } } });
  expect(await snapshot(world, inode.id)).toBe("taken");
  expect(world.inode(inode.id)).toMatchObject({ content: "dirty", hash: null, synced: "formerly" });
  expect([await bytesOf(world, inode.id), world.context.lastSnapshots.get(inode.id)?.at]).toEqual([TEXT, at]);
});

test("what is being done for a snapshot is known for as long as that lasts", async () => {
  const world = await createBytesWorld();
  const id = await written(world);
  const { snapshotsUnderWay } = world.context.fileState;
  const said = new Set<string | undefined>();
  let isOver = false;
  const done = snapshot(world, id).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    said.add(snapshotsUnderWay.get(id)?.what);
    await undefined;
  }
  await done;
  expect([...said]).toEqual(expect.arrayContaining(["synced to the disk", "hashed"]));
  expect(snapshotsUnderWay.size).toBe(0);
});

test("a writer opens the file while a snapshot waits for its commit: the snapshot does not count", async () => {
  const world = await createBytesWorld();
  const id = await written(world);
  const { groupCommit } = world.context;
  let writer = handleId(0);
  const later = async <T>(change: () => T) => {
    writer = await world.open(world.inode(id), { write: true });
    return groupCommit(change);
  };
  Object.assign(world.context, { groupCommit: Object.assign(later, { now: groupCommit.now }) });
  expect([await snapshot(world, id), newest(world, id)]).toEqual(["busy", undefined]);
  Object.assign(world.context, { groupCommit });
  await world.close(writer);
  expect(await snapshot(world, id)).toBe("taken");
});

test.each([
  ["stays", false],
  ["has gone", true],
])(
  "a small file grows while a snapshot of it begins, its writer %s: it is not read byte by byte",
  async (_, isGone) => {
    const world = await createBytesWorld();
    const id = await written(world, Buffer.from("."));
    await world.open(world.inode(id));
    const cacheFile = world.context.cacheFiles.get(world.inode(id).kernelNodeId);
    if (cacheFile === undefined) throw new Error("not open");
    const { sync, file } = cacheFile.disk;
    const content = pattern(100_000);
    let writer = handleId(0);
    const arrives = async () => {
      Object.assign(cacheFile.disk, { sync });
      writer = await world.open(world.inode(id), { write: true });
      await world.write(writer, 0, content);
      if (isGone) await world.close(writer);
    };
    let reads = 0;
    const { read } = file;
    file.read = (...args) => {
      reads += 1;
      return read(...args);
    };
    Object.assign(cacheFile.disk, { sync: async () => void (await Promise.all([sync(), arrives()])) });
    expect([await snapshot(world, id), reads < 10]).toEqual(["busy", true]);
    if (!isGone) await world.close(writer);
    expect(await snapshot(world, id)).toBe("taken");
    expect(await bytesOf(world, id)).toEqual(Buffer.from(content));
  },
);

test("a snapshot of a file that stays open is taken once its writing has paused, however often it is saved, and soon after an fsync", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  for (let save = 0; save < 10; save += 1) {
    const text = Buffer.from(`save ${save}`);
    await world.write(handle, 0, text);
    await world.clock.advance(2_000);
    await world.write(handle, 0, text);
    await world.clock.advance(2_500);
    expect(newest(world, inode.id)?.hash).not.toBe(hashOf(text));
    await world.clock.advance(1_000);
    expect(newest(world, inode.id)?.hash).toBe(hashOf(text));
    await world.clock.advance(10 * 60_000);
  }
  await world.write(handle, 0, Buffer.from("S"));
  await world.clock.advance(100);
  await createFileSystem(world.context).fsync(CALLER, handle, false);
  await world.clock.advance(1000);
  expect(await bytesOf(world, inode.id)).toEqual(Buffer.from("Save 9"));
});

test("a file that is written all the time has snapshots all the same, and a pause of it is longer then", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  const snapshots = () => world.context.lastSnapshots.get(inode.id)?.at;
  const write = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      await world.write(handle, 0, TEXT);
      await world.clock.advance(1_000);
    }
  };
  await write(14);
  expect(snapshots()).toBeUndefined();
  await write(4);
  const first = snapshots();
  if (first === undefined) throw new Error("there is no snapshot");
  await world.clock.advance(4_000);
  expect(snapshots()).toBe(first);
  await world.clock.advance(3_000);
  expect(minus(snapshots() ?? first, first)).toBeGreaterThan(0);
});

test("a large file is not copied again before ten times as long as that took, whether it came to a snapshot or not", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  const { runtime, lastSnapshots } = world.context;
  const { clone } = runtime.files;
  let copies = 0;
  const slow = async (from: string, to: string) => {
    copies += 1;
    if (copies === 2) await world.write(handle, 0, Buffer.from("W"));
    await sleep(runtime, 5_000);
    return clone(from, to);
  };
  Object.assign(world.context, { runtime: { ...runtime, files: { ...runtime.files, clone: slow } } });
  await world.write(handle, 0, TEXT);
  await world.clock.advance(9_000);
  expect([copies, newest(world, inode.id)?.hash]).toEqual([1, hashOf(TEXT)]);
  const first = lastSnapshots.get(inode.id)?.at;
  await world.write(handle, 0, Buffer.from("w"));
  await world.clock.advance(45_000);
  expect(copies).toBe(1);
  await world.clock.advance(10_000);
  expect([copies, lastSnapshots.get(inode.id)?.at]).toEqual([2, first]);
  await world.clock.advance(45_000);
  expect(copies).toBe(2);
  await world.clock.advance(10_000);
  expect(copies).toBe(3);
});

test("a writer stops an upload of the cache file twice; the third time the upload gets a copy", async () => {
  const world = await createBytesWorld();
  const id = await written(world);
  const stopped: number[] = [];
  for (let round = 1; round <= 3; round += 1) {
    expect(await snapshot(world, id)).toBe("taken");
    const sent = attempt(world, id, `key ${round}`);
    world.context.sending.set(sent.id, () => stopped.push(round));
    const before = newest(world, id);
    const handle = await world.open(world.inode(id), { write: true });
    const kept = world.context.metadata.attempts.ofKey(`key ${round}`);
    if (round < 3) {
      expect(kept).toMatchObject({ state: "abandoned", snapshot: null });
      expect(world.context.metadata.snapshots.get(before?.id ?? snapshotId(0))).toBeUndefined();
      expect(world.inode(id).hash).toBeNull();
    } else {
      expect(kept).toMatchObject({ state: "open", snapshot: before?.id });
      expect(newest(world, id)).toMatchObject({ id: before?.id, kernelNodeId: null });
      await world.write(handle, 0, Buffer.from("changed"));
      expect(await bytesOf(world, id)).toEqual(TEXT);
    }
    world.context.sending.delete(sent.id);
    await world.close(handle);
  }
  expect(stopped).toEqual([1, 2, 3]);
});

test("two names send one snapshot: a writer stops both, and the first answer leaves it for the second", async () => {
  const world = await createBytesWorld();
  const id = await written(world);
  await snapshot(world, id);
  const { metadata } = world.context;
  const first = attempt(world, id, "one");
  const second = { ...metadata.entries.create(inodeId(1), "other", id) };
  const { unborn } = await import("../../../src/metadata/nodes.ts");
  const row = metadata.nodes.create(unborn(second.id, "file", rowTime(0), rowTime(0)));
  metadata.attempts.create({
    node: row.id,
    key: "two",
    request: first.request,
    snapshot: first.snapshot,
    nextAt: rowTime(0),
    createdAt: rowTime(0),
  });
  metadata.attempts.remove(first.id);
  world.context.snapshotFiles.drop(first.snapshot ?? snapshotId(0));
  expect(newest(world, id)?.id).toBe(first.snapshot);
  const handle = await world.open(world.inode(id), { write: true });
  expect(metadata.attempts.ofKey("two")).toMatchObject({ state: "abandoned" });
  await world.close(handle);
});

test("after a crash a snapshot without its file is none, and one with it is as it was", async () => {
  const world = await createBytesWorld();
  const id = await written(world);
  await snapshot(world, id);
  const { inode: open, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await world.clock.advance(1000);
  await snapshot(world, open.id);
  const copy = newest(world, open.id);
  await world.files.remove(world.context.paths.snapshot(copy?.id ?? snapshotId(0)));
  const next = world.crash();
  await next.recover();
  expect(await bytesOf(next, id)).toEqual(TEXT);
  expect(next.inode(id).hash).toBe(hashOf(TEXT));
  expect(newest(next, open.id)).toBeUndefined();
  expect(next.inode(open.id).hash).toBeNull();
  expect(await snapshot(next, open.id)).toBe("taken");
  expect(await bytesOf(next, open.id)).toEqual(TEXT);
});

test("of a file that stays open too, the name is synced before the rows call its content safe", async () => {
  const world = await createBytesWorld();
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  await world.clock.advance(1_000);
  const { dir } = parse(world.context.paths.cacheFile(inode.kernelNodeId));
  const restore = world.files.fail({ path: new RegExp(`^${dir}$`), code: "EIO", on: ["syncFolder"] });
  await expect(snapshot(world, inode.id)).rejects.toThrow("EIO");
  expect(world.inode(inode.id).synced).toBe("never");
  restore();
  expect(await snapshot(world, inode.id)).toBe("taken");
  expect(world.inode(inode.id).synced).toBe("durable");
});
