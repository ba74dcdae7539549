/** What a create, a close and an open cost: commits, and calls on local files. */
import { expect, test } from "vitest";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { minus } from "../../../src/lib/clocks.ts";
import { type InodeId, inodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { recordedRows } from "../../support/recorded-rows.ts";
import { CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";

const WRITING = { read: false, write: true, append: false, truncate: false, exclusive: true };

async function countingWorld(isPassing: boolean) {
  let commits = 0;
  let isInTransaction = false;
  const world = await createBytesWorld(
    {},
    {
      isPassing,
      rows: (database) =>
        recordedRows(database, (sql) => {
          if (/^BEGIN/.test(sql)) isInTransaction = true;
          else if (/^(COMMIT|ROLLBACK)$/.test(sql)) isInTransaction = false;
          if (!isInTransaction && /^\s*(COMMIT|INSERT|UPDATE|DELETE)/.test(sql)) commits += 1;
        }),
    },
  );
  const { context } = world;
  context.metadata.inodes.update(ROOT_INODE, { listed: 0 });
  const root = context.metadata.inodes.get(ROOT_INODE)?.kernelNodeId ?? kernelNodeId(0);
  const commitsOf = async <T>(work: () => Promise<T>) => {
    const before = commits;
    const result = await work();
    return { result, commits: commits - before };
  };
  return { world, context, root, commitsOf };
}

test("of a passthrough file a create is one commit, a close one, its end none, and opening it again none", async () => {
  const { world, context, root, commitsOf } = await countingWorld(true);
  for (const name of ["a", "b"]) {
    const made = await commitsOf(() => createFileSystem(context).create(CALLER, root, name, 0o644, WRITING));
    const { handle, kernelNodeId, backing } = made.result;
    await world.passthrough?.fileOf(backing ?? 0).write(pattern(10), 0);
    // Before Linux 6.13 a change may follow within a tick of the clock, unseen.
    await world.clock.advance(50);
    const flushed = await commitsOf(() => createFileSystem(context).flush(CALLER, handle));
    const released = await commitsOf(() => createFileSystem(context).release(handle));
    const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
    if (inode === undefined) throw new Error("it is gone");
    expect(inode).toMatchObject({ size: 10, content: "dirty", hash: null });
    const reopened = await commitsOf(async () => world.close(await world.open(inode)));
    expect([made, flushed, released, reopened].map(({ commits }) => commits)).toEqual([1, 1, 0, 0]);
  }
});

test("served, the first write is one more", async () => {
  const { world, context, root, commitsOf } = await countingWorld(false);
  const made = await commitsOf(() => createFileSystem(context).create(CALLER, root, "a", 0o644, WRITING));
  const { handle } = made.result;
  const first = await commitsOf(() => world.write(handle, 0, pattern(10)));
  const second = await commitsOf(() => world.write(handle, 10, pattern(10)));
  const closed = await commitsOf(() => world.close(handle));
  expect([made, first, second, closed].map(({ commits }) => commits)).toEqual([1, 1, 0, 1]);
});

test("a removal is one commit, and the end of what was removed another, with a snapshot that waits to be sent and without", async () => {
  const { world, context, root, commitsOf } = await countingWorld(false);
  for (const hasSnapshot of [false, true]) {
    const { handle, kernelNodeId } = await createFileSystem(context).create(CALLER, root, "a", 0o644, WRITING);
    await world.write(handle, 0, pattern(10));
    await world.close(handle);
    const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId)?.id ?? inodeId(0);
    if (hasSnapshot) expect(await context.snapshots.take(inode, CALLER.signal)).toBe("taken");
    const removed = await commitsOf(() => createFileSystem(context).unlink(CALLER, root, "a"));
    const forgotten = await commitsOf(async () => {
      context.orphans.forgotten([{ kernelNodeId }]);
      context.orphans.dropForgotten();
    });
    expect([removed, forgotten].map(({ commits }) => commits)).toEqual([1, 1]);
    expect(context.metadata.inodes.get(inode)).toBe(undefined);
    await Promise.all(context.fileState.tasks);
  }
});

test("many snapshots are one commit, and none makes a file one that was used lately", async () => {
  const { world, context, root, commitsOf } = await countingWorld(false);
  const inodes: InodeId[] = [];
  for (const name of ["a", "b", "c"]) {
    const { handle, kernelNodeId } = await createFileSystem(context).create(CALLER, root, name, 0o644, WRITING);
    await world.write(handle, 0, pattern(10));
    await world.close(handle);
    inodes.push(context.metadata.inodes.ofKernelNodeId(kernelNodeId)?.id ?? inodeId(0));
  }
  const usedAt = () => inodes.map((id) => context.metadata.cacheFiles.get(world.inode(id).kernelNodeId)?.usedAt);
  const before = usedAt();
  await world.clock.advance(60_000);
  const snapshot = await commitsOf(() => Promise.all(inodes.map((id) => context.snapshots.take(id, CALLER.signal))));
  expect(snapshot).toEqual({ result: ["taken", "taken", "taken"], commits: 1 });
  expect(usedAt()).toEqual(before);
  for (const id of inodes) await world.close(await world.open(world.inode(id)));
  expect(usedAt().map((at, index) => at !== undefined && minus(at, before[index] ?? at) >= 60_000)).toEqual([
    true,
    true,
    true,
  ]);
});

test("what a create and a close do to the local file, told to truncate it too: nothing waits for the thread pool", async () => {
  const { world, context, root } = await countingWorld(true);
  const calls: string[] = [];
  const { files } = context.runtime;
  const open: typeof files.open = async (path, mode) => {
    const file = await files.open(path, mode);
    calls.push("open");
    return new Proxy(file, {
      get(target, name, receiver) {
        const value = Reflect.get(target, name, receiver) as unknown;
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          calls.push(String(name));
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
  };
  Object.assign(context, { runtime: { ...context.runtime, files: { ...files, open } } });
  const { handle, backing } = await createFileSystem(context).create(CALLER, root, "a", 0o644, {
    ...WRITING,
    truncate: true,
  });
  expect(calls.splice(0)).toEqual(["open", "setTimes", "stat", "stat"]);
  await world.passthrough?.fileOf(backing ?? 0).write(pattern(10), 0);
  await world.clock.advance(50);
  await createFileSystem(context).flush(CALLER, handle);
  expect(calls.splice(0)).toEqual(["stat"]);
  await createFileSystem(context).release(handle);
  expect(calls.splice(0)).toEqual(["stat", "stat", "close"]);
});

test("a file that a crash left in the place of a new one is none of its content", async () => {
  const { world, context, root } = await countingWorld(true);
  const next = kernelNodeId(context.metadata.inodes.newestKernelNodeId() + 1);
  const path = context.paths.cacheFile(next);
  await context.paths.prepareFolderOf(path);
  const left = await world.files.open(path, "w+");
  await left.write(pattern(20), 0);
  await left.close();
  const {
    handle,
    kernelNodeId: given,
    stat,
  } = await createFileSystem(context).create(CALLER, root, "a", 0o644, WRITING);
  expect([given, stat.size]).toEqual([next, 0]);
  await world.close(handle);
  const inode = context.metadata.inodes.ofKernelNodeId(given);
  expect(inode === undefined ? undefined : (await world.readAll(inode)).length).toBe(0);
});
