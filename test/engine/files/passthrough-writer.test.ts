/**
 * A snapshot of a passthrough file that ends at any moment while a writer opens it: bytes written then are neither lost nor
 * called whole.
 */
import { expect, test } from "vitest";
import type { OpenFlags } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf } from "../support/bytes-world.ts";
import { holdNext } from "../support/hold-next.ts";

const READING: OpenFlags = { read: true, write: false, append: false, truncate: false, exclusive: false };
const WRITING: OpenFlags = { ...READING, write: true };

const inodeAt = ({ context, inode }: BytesWorld, name: string) =>
  inode(context.metadata.entries.find(ROOT_INODE, name)?.inode);

/** File "a" of the gateway, all here, as the writer finds it; a reader has it open. */
async function begin(state: "clean" | "written" | "synced") {
  const world = await createBytesWorld({}, { isPassing: true });
  const { context, clock, passthrough } = world;
  const { id, kernelNodeId } = world.addRemote(Buffer.from("the head"), { name: "a" });
  await world.readAll(world.inode(id));
  await clock.advance(1_000);
  const write = (backing: number | undefined, bytes: string) =>
    passthrough?.fileOf(backing ?? -1).write(Buffer.from(bytes), 0);
  if (state !== "clean") {
    const first = await createFileSystem(context).open(CALLER, kernelNodeId, WRITING);
    write(first.backing, "news");
    await clock.advance(1_000);
    if (state === "synced") await createFileSystem(context).fsync(CALLER, first.handle, false);
    await world.close(first.handle);
    while (context.fileState.tasks.size > 0) await Promise.all(context.fileState.tasks);
  }
  await createFileSystem(context).open(CALLER, kernelNodeId, READING);
  await clock.advance(1_000);
  const cacheFile = context.cacheFiles.get(kernelNodeId);
  if (cacheFile === undefined) throw new Error("not open");
  Object.assign(context, { dirtyLog: { ...context.dirtyLog } });
  return { world, id, kernelNodeId, cacheFile, write };
}

const snapshot = ({ context }: BytesWorld, id: InodeId) => context.snapshots.take(id, CALLER.signal);

const STATES = ["clean", "written", "synced"] as const;
const MOMENTS = ["flush", "syncRows", "stat"] as const;
// Rows that never said that it is safe need not be synced first.
const CASES = STATES.flatMap((state) => MOMENTS.map((moment) => ({ state, moment }))).filter(
  ({ state, moment }) => state !== "written" || moment !== "syncRows",
);

/** A writer has opened the file, and a snapshot was made while it was at `moment`. */
async function openedDuringSnapshot({ state, moment }: (typeof CASES)[number]) {
  const one = await begin(state);
  const { world, id, kernelNodeId, cacheFile } = one;
  const { context } = world;
  // Of clean content a snapshot says that it is safe.
  if (state === "clean" && moment === "syncRows") cacheFile.changes.setDurable(true);
  const held =
    moment === "stat"
      ? holdNext(cacheFile.disk.file, "stat")
      : moment === "flush"
        ? holdNext(context.dirtyLog, "flush")
        : holdNext(context, "syncRows");
  const opening = createFileSystem(context).open(CALLER, kernelNodeId, WRITING);
  for (let turns = 0; !held.isReached() && turns < 1_000; turns += 1) await undefined;
  expect([held.isReached(), cacheFile.use.writers, cacheFile.passthrough.lastStat]).toEqual([true, 1, undefined]);
  expect(await snapshot(world, id)).toBe(state === "clean" ? "clean" : "taken");
  held.goOn();
  const { backing } = await opening;
  return { ...one, write: (bytes: string) => one.write(backing, bytes) };
}

test.each(CASES)(
  "after a crash the written bytes are there and are sent: $state before, snapshot at $moment",
  async (it) => {
    const { world, id, write } = await openedDuringSnapshot(it);
    write("late");
    const next = world.crash();
    await next.recover();
    expect(await snapshot(next, id)).toBe("taken");
    expect(next.inode(id).hash).toBe(hashOf(Buffer.from("latehead")));
  },
);

test.each(CASES)(
  "after power loss the bytes being written replace nothing: $state before, snapshot at $moment",
  async (it) => {
    const { world, write } = await openedDuringSnapshot(it);
    write("torn");
    await world.context.syncRows();
    const next = await world.powerLoss();
    expect(await snapshot(next, inodeAt(next, "a").id)).toBe(it.state === "synced" ? "quarantined" : "clean");
  },
);
