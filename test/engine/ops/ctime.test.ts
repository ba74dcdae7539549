/** When something was last changed, as programs are shown it. */
import { expect, test } from "vitest";
import type { Stat } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { compareTimes, formatTime, HOUR_MS } from "../../../src/lib/time.ts";
import type { KernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";
import { makeWorld, nodeOf, rowOf } from "../support/rows-world.ts";

test.each([true, false])("a time to come is no change when it comes (open for writing: %s)", async (isOpen) => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(10));
  const handle = isOpen ? await world.open(world.inode(id), { write: true }) : undefined;
  const { clock, context } = world;
  const ctime = async () => (await world.stat(id)).ctime;
  const begun = { seconds: Math.floor(clock.wallClock() / 1000), nanoseconds: 0 };
  const mtime = { seconds: begun.seconds + 60, nanoseconds: 5 };
  await createFileSystem(context).setattr(CALLER, world.inode(id).kernelNodeId, { mtime });
  const before = await ctime();
  expect(Math.abs(before.seconds - begun.seconds)).toBeLessThan(2);
  await clock.advance(HOUR_MS);
  expect([await ctime(), (await world.stat(id)).mtime]).toEqual([before, mtime]);
  await createFileSystem(context).setattr(CALLER, world.inode(id).kernelNodeId, { mode: 0o600 });
  const after = await ctime();
  expect(after.seconds - before.seconds).toBe(HOUR_MS / 1000);
  if (handle === undefined) return;
  await clock.advance(HOUR_MS);
  await world.write(handle, 0, Buffer.from("x"));
  const written = await world.stat(id);
  expect(compareTimes(written.ctime, after)).toBeGreaterThan(0);
  expect(compareTimes(written.ctime, written.mtime)).toBeGreaterThanOrEqual(0);
});

test.each([
  ["another change after the write", -1, "changed"],
  ["a gateway whose clock is ahead", 3600, "written"],
])("what the rows have of %s counts unless it is to come", async (_, ahead, expected) => {
  const world = await createBytesWorld();
  const { context, clock } = world;
  const { id } = world.addRemote(pattern(10));
  await clock.advance(HOUR_MS);
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, Buffer.from("x"));
  const written = Math.floor(clock.wallClock() / 1000);
  // Before its snapshot, from when on the rows have its time.
  await clock.advance(2_000);
  const changed = written + 2 + ahead;
  context.metadata.inodes.update(id, { ctime: formatTime({ seconds: changed, nanoseconds: 0 }) });
  const ctime = async () => (await world.stat(id)).ctime.seconds;
  const shown = await ctime();
  await createFileSystem(context).flush(CALLER, handle);
  const last = expected === "changed" ? changed : written;
  expect([shown, await ctime()]).toEqual([last, last]);
});

test("a time to come that is set is no change when the file is closed", async () => {
  const world = await createBytesWorld();
  const { context, clock } = world;
  const { id } = world.addRemote(pattern(10));
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, Buffer.from("x"));
  const mtime = { seconds: Math.floor(clock.wallClock() / 1000) + 3600, nanoseconds: 0 };
  const { stat } = await createFileSystem(context).setattr(CALLER, world.inode(id).kernelNodeId, { mtime });
  await clock.advance(10_000);
  await createFileSystem(context).flush(CALLER, handle);
  expect(await world.stat(id)).toEqual(stat);
});

test("who sets the time after he wrote has changed the file last: at close there is no more to tell", async () => {
  const world = await createBytesWorld();
  const { context, clock } = world;
  const { id } = world.addRemote(pattern(10));
  const { kernelNodeId } = world.inode(id);
  const told: number[] = [];
  context.metadata.changed.onTell(({ inodes }) => told.push(...inodes));
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 10, Buffer.from("more"));
  const mtime = { seconds: 1, nanoseconds: 5 };
  await createFileSystem(context).setattr(CALLER, kernelNodeId, { mtime });
  const { stat: set } = await createFileSystem(context).setattr(CALLER, kernelNodeId, { mode: 0o600 });
  expect(set).toMatchObject({ size: 14, mtime });
  told.splice(0);
  await clock.advance(1000);
  await createFileSystem(context).flush(CALLER, handle);
  expect(told).toEqual([]);
  expect(world.inode(id)).toMatchObject({ content: "dirty", size: 14, hash: null });
  expect((await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat).toEqual(set);
  // Once that was told, and as if through a mapping.
  await world.write(handle, 0, Buffer.from("more"));
  await createFileSystem(context).flush(CALLER, handle);
  expect(told).toEqual([id]);
  const { stat: written } = await createFileSystem(context).getattr(CALLER, kernelNodeId);
  expect(compareTimes(written.mtime, mtime)).toBeGreaterThan(0);
  expect(compareTimes(written.ctime, set.ctime)).toBeGreaterThan(0);
});

test("what is changed later is never older, whether the disk or the rows are stamped", async () => {
  const world = await createBytesWorld();
  const { context } = world;
  const { kernelNodeId: root } = context.metadata.inodes.update(ROOT_INODE, { listed: 1 });
  const shown = async (kernelNodeId: KernelNodeId) =>
    (await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat;
  const { inode: file, handle } = await world.create();
  const of = () => shown(world.inode(file.id).kernelNodeId);
  const name = context.metadata.entries.firstOfInode(file.id)?.name ?? "";
  const steps: [string, () => Promise<unknown>, (() => Promise<Stat>)?][] = [
    ["write", () => world.write(handle, 0, Buffer.from("x"))],
    ["mkdir", () => createFileSystem(context).mkdir(CALLER, root, "d", 0o755), () => shown(root)],
    ["truncate", () => world.truncate(file.id, 0, handle)],
    ["symlink", () => createFileSystem(context).symlink(CALLER, root, "l", "d"), () => shown(root)],
    ["write again", () => world.write(handle, 0, Buffer.from("y"))],
    ["chmod", () => createFileSystem(context).setattr(CALLER, file.kernelNodeId, { mode: 0o600 })],
    ["close", () => world.close(handle)],
    [
      "setxattr",
      () => createFileSystem(context).setxattr(CALLER, file.kernelNodeId, "user.a", Buffer.from("1"), NO_FLAGS),
    ],
    [
      "rename",
      () =>
        createFileSystem(context).rename(CALLER, { parent: root, name }, { parent: root, name: "f" }, NO_RENAME_FLAGS),
    ],
    ["touch", () => createFileSystem(context).setattr(CALLER, file.kernelNodeId, { mtime: "now", atime: "now" })],
    ["truncate by name", () => world.truncate(file.id, 5)],
    ["link", () => createFileSystem(context).link(CALLER, file.kernelNodeId, root, "g")],
    ["removexattr", () => createFileSystem(context).removexattr(CALLER, file.kernelNodeId, "user.a")],
    ["unlink", () => createFileSystem(context).unlink(CALLER, root, "g")],
  ];
  let before = (await of()).ctime;
  for (const [label, step, stat = of] of steps) {
    await step();
    const { ctime, mtime } = await stat();
    const isLater = label === "close" ? compareTimes(ctime, before) === 0 : compareTimes(ctime, before) > 0;
    expect([label, isLater, compareTimes(ctime, mtime) >= 0]).toEqual([label, true, true]);
    before = ctime;
  }
});

const NO_FLAGS = { create: false, replace: false };
const NO_RENAME_FLAGS = { noReplace: false, exchange: false };

test.each([2 * HOUR_MS, -2 * HOUR_MS])(
  "others' change, by a clock off by %i ms: ctime is when it came in",
  async (off) => {
    const world = await makeWorld();
    const { context, clock, metadata } = world;
    const changes = [
      { head: "head", contentHash: "first", attributes: {} },
      { head: "head 2", contentHash: "second" },
      { attributes: { mode: 0o600 } },
      { name: "renamed" },
    ];
    let node = nodeOf("x", { revision: 0 });
    for (const change of changes) {
      await clock.advance(HOUR_MS);
      const { revision } = node;
      const modifiedAt = new Date(clock.wallClock() + off).toISOString();
      node = { ...node, ...change, modifiedAt, revision: revision + 1 };
      metadata.transaction(() => context.observer.node(node));
      const row = rowOf(world, "x");
      const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
      const { ctime, mtime } = await world.stat(entry?.inode);
      expect([row.base?.revision, ctime.seconds]).toEqual([node.revision, Math.floor(clock.wallClock() / 1000)]);
      expect(mtime.seconds).toBe(Math.floor(Date.parse(modifiedAt) / 1000));
    }
  },
);

test("others' times that no disk holds are shown alike whether the file is open or not, and stay with the node", async () => {
  const world = await createBytesWorld();
  const mtime = "253402300800.000000005";
  const { id } = world.addRemote(pattern(10), { attributes: { mtime } });
  const shown = async () =>
    (await createFileSystem(world.context).getattr(CALLER, world.inode(id).kernelNodeId)).stat.mtime;
  const before = await shown();
  const handle = await world.open(world.inode(id), { write: true });
  expect([before, await shown()]).toEqual(Array(2).fill({ seconds: 15032385535, nanoseconds: 0 }));
  await world.close(handle);
  expect(world.inode(id)).toMatchObject({ content: "clean", attributes: { mtime } });
});
