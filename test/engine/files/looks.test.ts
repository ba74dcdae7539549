/** The size and times of a file the kernel writes itself are looked at by several at once, or while its writers go. */
import { expect, test } from "vitest";
import type { HandleId, OpenFlags } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { formatTime } from "../../../src/lib/time.ts";
import { type InodeId, inodeId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf } from "../support/bytes-world.ts";
import { holdNext } from "../support/hold-next.ts";

const HEAD = Buffer.from("the head");
const READING: OpenFlags = { read: true, write: false, append: false, truncate: false, exclusive: false };
const WRITING: OpenFlags = { ...READING, write: true };

interface Passed {
  readonly handle: HandleId;
  /** Without a word to the file system. */
  write(text: string): void;
  close(): Promise<void>;
}

/** A passthrough file of the gateway that is all here. */
async function begin() {
  const world = await createBytesWorld({}, { isPassing: true });
  const { context, clock, passthrough } = world;
  const { id, kernelNodeId } = world.addRemote(HEAD, { name: "a" });
  await world.readAll(world.inode(id));
  await clock.advance(1_000);
  Object.assign(context, { dirtyLog: { ...context.dirtyLog } });
  const openPassed = async (flags = WRITING): Promise<Passed> => {
    const { handle, backing } = await createFileSystem(context).open(CALLER, kernelNodeId, flags);
    if (backing === undefined || passthrough === undefined) throw new Error("not passthrough");
    const file = passthrough.fileOf(backing);
    return { handle, write: (text) => file.write(Buffer.from(text), 0), close: () => world.close(handle) };
  };
  const liveOf = () => {
    const cacheFile = context.cacheFiles.get(kernelNodeId);
    if (cacheFile === undefined) throw new Error("not open");
    return cacheFile;
  };
  const inode = (): Inode => world.inode(id);
  return { world, context, clock, id, kernelNodeId, openPassed, liveOf, inode };
}

const snapshot = ({ context }: BytesWorld, id: InodeId) => context.snapshots.take(id, CALLER.signal);

test("a reader syncs the file while its last writer closes it: nothing fails, and nobody is left writing", async () => {
  const { context, clock, openPassed, liveOf, inode } = await begin();
  const reader = await openPassed(READING);
  const writer = await openPassed();
  await clock.advance(1_000);
  const held = holdNext(liveOf().disk.file, "stat", "after");
  const syncing = createFileSystem(context).fsync(CALLER, reader.handle, false);
  expect(held.isReached()).toBe(true);
  writer.write("news");
  await writer.close();
  held.goOn();
  await syncing;
  expect(inode()).toMatchObject({ content: "dirty" });
  expect(liveOf()).toMatchObject({ use: { writers: 0 }, passthrough: { lastStat: undefined } });
  await reader.close();
});

test("looked at by two, the older look does not have the last word: at a close that comes between them", async () => {
  const { world, context, clock, openPassed, liveOf, inode } = await begin();
  const reader = await openPassed(READING);
  const writer = await openPassed();
  await clock.advance(1_000);
  writer.write("news");
  await clock.advance(1_000);
  const held = holdNext(liveOf().disk.file, "stat", "after");
  const syncing = createFileSystem(context).fsync(CALLER, reader.handle, false);
  writer.write("later news");
  await clock.advance(1_000);
  await writer.close();
  held.goOn();
  await syncing;
  await reader.close();
  expect(inode()).toMatchObject({ content: "dirty", size: 10 });
  expect(await snapshot(world, inode().id)).toBe("taken");
  expect(inode().hash).toBe(hashOf(Buffer.from("later news")));
});

test("two programs flush, one before and one after a write: the rows have what was written", async () => {
  const { context, clock, openPassed, inode } = await begin();
  const [one, other] = [await openPassed(), await openPassed()];
  await clock.advance(1_000);
  one.write("news");
  await clock.advance(1_000);
  const { flush: flushNow } = context.dirtyLog;
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  Object.assign(context, { dirtyLog: { ...context.dirtyLog, flush: () => held.then(flushNow) } });
  const first = createFileSystem(context).flush(CALLER, one.handle);
  await clock.advance(1_000);
  other.write("later news");
  await clock.advance(1_000);
  const second = createFileSystem(context).flush(CALLER, other.handle);
  await clock.advance(1_000);
  goOn();
  await Promise.all([first, second]);
  await createFileSystem(context).release(one.handle);
  await createFileSystem(context).release(other.handle);
  expect(inode()).toMatchObject({ content: "dirty", size: 10 });
});

test("what was written since a sync is not called safe where the last close cannot look", async () => {
  const { world, context, clock, kernelNodeId, openPassed, inode } = await begin();
  const writer = await openPassed();
  writer.write("news");
  await clock.advance(1_000);
  await createFileSystem(context).fsync(CALLER, writer.handle, false);
  await clock.advance(1_000);
  writer.write("torn");
  const heal = world.files.fail({ path: /live/, code: "EIO", on: ["stat"], times: Number.POSITIVE_INFINITY });
  await createFileSystem(context).release(writer.handle);
  heal();
  expect(inode()).toMatchObject({ content: "dirty", synced: "formerly" });
  await context.syncRows();
  const next = await world.powerLoss();
  expect(await snapshot(next, next.context.metadata.inodes.ofKernelNodeId(kernelNodeId)?.id ?? inodeId(0))).toBe(
    "quarantined",
  );
});

test("a snapshot does not count where the close of one who came meanwhile cannot look", async () => {
  const { world, context, clock, id, openPassed, liveOf, inode } = await begin();
  const first = await openPassed();
  first.write("news");
  await clock.advance(1_000);
  await first.close();
  const reader = await openPassed(READING);
  const held = holdNext(context, "groupCommit");
  const taking = snapshot(world, id);
  for (let turns = 0; !held.isReached() && turns < 1_000; turns += 1) await undefined;
  const second = await openPassed();
  second.write("more");
  await clock.advance(1_000);
  const {
    disk: { file },
  } = liveOf();
  const { stat } = file;
  Object.assign(file, { stat: () => Promise.reject(Object.assign(new Error("EIO"), { code: "EIO" })) });
  await createFileSystem(context).release(second.handle);
  Object.assign(file, { stat });
  held.goOn();
  expect(await taking).toBe("busy");
  expect(await snapshot(world, id)).toBe("taken");
  expect(inode().hash).toBe(hashOf(Buffer.from("morehead")));
  await reader.close();
});

test("a program sets the time while the last close looks at the file: it is the time of the file", async () => {
  const { context, clock, kernelNodeId, openPassed, inode } = await begin();
  const writer = await openPassed();
  await clock.advance(1_000);
  writer.write("news");
  await clock.advance(1_000);
  const held = holdNext(context.dirtyLog, "flush");
  const closing = createFileSystem(context).release(writer.handle);
  for (let turns = 0; !held.isReached() && turns < 100; turns += 1) await undefined;
  const mtime = { seconds: 1_000_000_000, nanoseconds: 5 };
  const { stat } = await createFileSystem(context).setattr(CALLER, kernelNodeId, { mtime });
  expect(stat.mtime).toEqual(mtime);
  held.goOn();
  await closing;
  expect(inode().attributes.mtime).toBe(formatTime(mtime));
});

test("a snapshot of a save is taken after a pause also where nobody hears of it, the tenth as soon as the first", async () => {
  const { clock, openPassed, inode } = await begin();
  const writer = await openPassed();
  for (let save = 0; save < 10; save += 1) {
    await clock.advance(10 * 60_000 + 700 * save);
    const text = `save ${save}..`;
    writer.write(text);
    await clock.advance(2_900);
    expect(inode().hash).not.toBe(hashOf(Buffer.from(text)));
    await clock.advance(200);
    expect(inode().hash).toBe(hashOf(Buffer.from(text)));
  }
});

test("a file that is open and not written to is looked at seldom, the more seldom the more there are", async () => {
  const world = await createBytesWorld({}, { isPassing: true });
  const { cacheFiles } = world.context;
  const looksASecond = async (count: number) => {
    while (cacheFiles.size < count) {
      const { id } = world.addRemote(HEAD, { name: `${cacheFiles.size}` });
      await world.readAll(world.inode(id));
      await world.open(world.inode(id), { write: true });
    }
    let looks = 0;
    for (const {
      disk: { file },
    } of cacheFiles.values()) {
      const { stat } = file;
      const counted: typeof stat = () => {
        looks += 1;
        return stat();
      };
      Object.assign(file, { stat: counted });
    }
    await world.clock.advance(60_000);
    return looks / 60;
  };
  const ofOne = await looksASecond(1);
  expect(ofOne > 0.1 && ofOne < 0.5).toBe(true);
  expect(await looksASecond(200)).toBeLessThan(25);
});
