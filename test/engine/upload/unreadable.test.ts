/** What went wrong with a content is remembered for as long as it says something. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import { fromDisk } from "../../../src/engine/api/index.ts";
import { retryNow } from "../../../src/engine/ops/index.ts";
import { send } from "../../../src/engine/upload/send.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { systemError } from "../../../src/lib/system-error.ts";
import { entryId, type InodeId, inodeId, type KernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { createBytesWorld, type Parts, pattern, withParts } from "../support/bytes-world.ts";
import { makeWorld, remove } from "../support/rows-world.ts";

async function failing(count: number) {
  const world = await createBytesWorld();
  const { fileState, network, metadata } = world.context;
  const inodes: InodeId[] = [];
  const names: string[] = [];
  const kernelNodeIds: KernelNodeId[] = [];
  for (let index = 0; index < count; index += 1) {
    const { inode, handle, name } = await world.create();
    await world.close(handle);
    names.push(name);
    metadata.inodes.update(inode.id, { originNode: `n${index}`, originVersion: `v${index}` });
    fileState.unreadable.set(inode.kernelNodeId, { tries: 3, why: "the disk" });
    network.cannotRefer(`v${index}`);
    inodes.push(inode.id);
    kernelNodeIds.push(inode.kernelNodeId);
  }
  const failures = () =>
    kernelNodeIds.map((kernelNodeId, index) => [
      fileState.unreadable.has(kernelNodeId),
      !network.mayRefer(`v${index}`),
    ]);
  return { world, inodes, names, failures };
}

test("a retry forgets it, of what is to be tried again", async () => {
  const { world, names, failures } = await failing(2);
  const retry = async (paths?: string[]) => {
    const [{ retried }] = await Promise.all([retryNow(world.context, paths), world.clock.advance(1_000)]);
    return retried;
  };
  expect(await retry([`/${names[0]}`])).toBe(1);
  expect(failures()).toEqual([
    [false, false],
    [true, true],
  ]);
  expect(await retry()).toBe(2);
  expect(failures()[1]).toEqual([false, false]);
});

test("with its last name and the last who has it open it is forgotten", async () => {
  const { world, inodes, failures } = await failing(2);
  const { metadata } = world.context;
  const [id = inodeId(0)] = inodes;
  for (const entry of metadata.entries.ofInode(id)) metadata.entries.remove(entry.id);
  world.context.orphans.removeInode(world.inode(id));
  expect(failures()).toEqual([
    [false, false],
    [true, true],
  ]);
});

test("descriptors that are all in use say nothing of it: it waits no longer each time", async () => {
  const { world, row, inode } = await unreadableSnapshot();
  const tryWith = (code: string) => world.context.readFailures.couldNotRead(row, inode, systemError(code, "open"));
  expect([tryWith("EMFILE"), tryWith("EMFILE"), tryWith("ENFILE")]).toEqual([1, 1, 1]);
  expect([tryWith("EIO"), tryWith("EIO"), tryWith("EMFILE")]).toEqual([2, 3, 3]);
  expect(fromDisk(systemError("EMFILE", "open"), "the file")).toMatchObject({ code: "ENFILE" });
});

/** A file with a snapshot whose request is under way; nothing of the snapshot can be read. */
async function unreadableSnapshot() {
  const world = await makeWorld();
  const { metadata, clock } = world;
  const { inode, handle } = await world.create();
  await world.write(handle, 0, pattern(5_000));
  await world.close(handle);
  const signal = new AbortController().signal;
  const taken = world.context.snapshots.take(inode.id, signal);
  await clock.advance(1_000);
  expect(await taken).toBe("taken");
  const [entry] = metadata.entries.ofInode(inode.id);
  const row = metadata.nodes.ofEntry(entry?.id ?? entryId(0)) ?? expect.unreachable("no row");
  const step = world.context.planner.advance(row.id)?.step;
  const request = step?.do === "send" ? step.request : expect.unreachable("nothing to send");
  const now = clock.wallClock();
  const snapshot = metadata.snapshots.newestOf(inode.id)?.id ?? null;
  metadata.attempts.create({
    node: row.id,
    key: "birth",
    request,
    snapshot,
    nextAt: rowTime(now),
    createdAt: rowTime(now),
  });
  const upload = async () => {
    throw new RemoteError("aborted", "the content to send cannot be read: EIO");
  };
  const context: Parts = withParts(world.context, { client: { ...world.context.client, upload } });
  return {
    world,
    row,
    inode,
    name: entry?.name ?? "",
    async tryAgain(times: number) {
      for (let time = 0; time < times; time += 1) {
        const attempt = metadata.attempts.openOf(row.id);
        if (attempt !== undefined)
          await send(context, attempt, signal, { turn: async () => true, progress() {}, over() {} });
      }
    },
  };
}

test("a snapshot that goes on not to be readable is made anew", async () => {
  const { world, row, inode, tryAgain } = await unreadableSnapshot();
  await tryAgain(4);
  expect(world.metadata.attempts.openOf(row.id)).toBeDefined();
  await tryAgain(4);
  expect(world.metadata.attempts.openOf(row.id)).toBeUndefined();
  expect(world.metadata.snapshots.newestOf(inode.id)).toBeUndefined();
  expect(world.context.planner.advance(row.id)?.step).toEqual({ do: "snapshot" });
});

test("removed, it is waited for no longer than for what may still arrive", async () => {
  const { world, row, name, tryAgain } = await unreadableSnapshot();
  remove(world, ROOT_INODE, name);
  await tryAgain(8);
  const { attempts, nodes } = world.metadata;
  expect(world.context.planner.advance(row.id)?.step).toEqual({ do: "wait", for: "answer" });
  attempts.removeAbandonedBefore(rowTime(world.clock.wallClock() + 1));
  world.context.planner.advance(row.id);
  expect(nodes.get(row.id)).toBeUndefined();
});

test("what is missing of content says nothing of other content that came in its place", async () => {
  const world = await makeWorld();
  const { context, metadata } = world;
  const { inode, handle } = await world.create();
  await world.close(handle);
  const [entry] = metadata.entries.ofInode(inode.id);
  const row = metadata.nodes.ofEntry(entry?.id ?? entryId(0)) ?? expect.unreachable("no row");
  const gone = new Error("no bytes", { cause: new RemoteError("notFound", "it is deleted") });
  const before = world.inode(inode.id);
  for (const tries of [1, 2, 3, 4]) expect(context.readFailures.couldNotRead(row, before, gone)).toBe(tries);
  const after = metadata.inodes.replaceKernelNodeId(inode.id, {});
  // A snapshot of what was there before ends late.
  expect(context.readFailures.couldNotRead(row, before, gone)).toBe(0);
  context.orphans.dropKernelNodeId(before.kernelNodeId);
  expect(context.fileState.unreadable.size).toBe(0);
  expect(metadata.nodes.get(row.id)?.parked).toBeNull();
  for (const tries of [1, 2, 3, 4]) expect(context.readFailures.couldNotRead(row, after, gone)).toBe(tries);
  expect(context.readFailures.couldNotRead(row, after, gone)).toBeUndefined();
  expect(metadata.nodes.get(row.id)?.parked).toMatch(/no bytes/);
});
