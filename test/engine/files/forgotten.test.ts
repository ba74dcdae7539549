/** What the kernel forgot goes a little later, many with one commit, unless the kernel was told of it again. */
import { expect, test } from "vitest";
import { FORGET_GATHER_MS, repeatForgets } from "../../../src/engine/files/on-forget.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { type Connection, forgetRead } from "../../../src/metadata/database.ts";
import { inodeId, type KernelNodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { recordedRows } from "../../support/recorded-rows.ts";
import { CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";

const READING = { read: true, write: false, append: false, truncate: false, exclusive: false };
const WRITING = { read: false, write: true, append: false, truncate: false, exclusive: true };

async function worldOfFiles() {
  const told = { commits: 0, isBroken: false, unreadable: 0 };
  let connection: Connection | undefined;
  const rows: Parameters<typeof createBytesWorld>[1] = {
    rows(database) {
      connection = recordedRows(database, (sql) => {
        if (sql.startsWith("BEGIN") && told.isBroken) throw new Error("the rows cannot be changed");
        if (sql.startsWith("SELECT") && told.unreadable-- > 0) throw new Error("the rows cannot be read");
        if (sql === "COMMIT") told.commits += 1;
      });
      return connection;
    },
  };
  const world = await createBytesWorld({}, rows);
  const { context } = world;
  context.metadata.inodes.update(ROOT_INODE, { listed: 0 });
  const root = context.metadata.inodes.get(ROOT_INODE)?.kernelNodeId ?? kernelNodeId(0);
  const made = async (name: string) => {
    const { handle, kernelNodeId } = await createFileSystem(context).create(CALLER, root, name, 0o644, WRITING);
    await world.write(handle, 0, pattern(10));
    await world.close(handle);
    return kernelNodeId;
  };
  const removed = async (name: string) => {
    const kernelNodeId = await made(name);
    await createFileSystem(context).unlink(CALLER, root, name);
    return kernelNodeId;
  };
  const isThere = (kernelNodeId: KernelNodeId) => context.metadata.inodes.ofKernelNodeId(kernelNodeId) !== undefined;
  /** Nothing is remembered of the rows. */
  const forgetRows = () => connection !== undefined && forgetRead(connection);
  return { world, context, root, told, made, removed, isThere, forgetRows };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `file-${index}`);

test("files that were removed one after the other go with one commit, and that they are gone is another", async () => {
  const { world, context, told, removed, isThere } = await worldOfFiles();
  const kernelNodeIds: KernelNodeId[] = [];
  for (const name of names(20)) kernelNodeIds.push(await removed(name));
  const before = told.commits;
  for (const kernelNodeId of kernelNodeIds) context.orphans.forgotten([{ kernelNodeId }]);
  expect(kernelNodeIds.every(isThere)).toBe(true);
  await world.clock.advance(FORGET_GATHER_MS);
  expect(kernelNodeIds.some(isThere)).toBe(false);
  expect(context.metadata.gone.some(1)).toEqual([]);
  expect(told.commits - before).toBe(2);
});

test("of very many each commit takes some, and none waits for the next word", async () => {
  const { world, context, removed, isThere } = await worldOfFiles();
  const kernelNodeIds: KernelNodeId[] = [];
  for (const name of names(100)) kernelNodeIds.push(await removed(name));
  context.orphans.forgotten(kernelNodeIds.map((kernelNodeId) => ({ kernelNodeId })));
  await world.clock.advance(FORGET_GATHER_MS);
  await world.clock.advance(1);
  expect(kernelNodeIds.some(isThere)).toBe(false);
});

test("what has a name, and what the kernel was told of again, stays", async () => {
  const { world, context, root, made, isThere } = await worldOfFiles();
  const { metadata } = context;
  const [named, again] = [await made("named"), await made("again")];
  const inode = metadata.inodes.ofKernelNodeId(again);
  if (inode === undefined) throw new Error("it is not there");
  await createFileSystem(context).unlink(CALLER, root, "again");
  context.orphans.forgotten([{ kernelNodeId: named }, { kernelNodeId: again }]);
  // Somebody elsewhere kept it: it comes back, is looked up, and is removed once more, all of that at once.
  metadata.entries.create(ROOT_INODE, "back", inode.id);
  expect(await createFileSystem(context).lookup(CALLER, root, "back")).toMatchObject({ kernelNodeId: again });
  await createFileSystem(context).unlink(CALLER, root, "back");
  await world.clock.advance(FORGET_GATHER_MS);
  expect([isThere(named), isThere(again)]).toEqual([true, true]);
  context.orphans.forgotten([{ kernelNodeId: again }]);
  await world.clock.advance(FORGET_GATHER_MS);
  expect(isThere(again)).toBe(false);
});

test("a version that replaced the forgotten one, and is known, stays though it lost its name", async () => {
  const { world, context, root, made } = await worldOfFiles();
  const { metadata } = context;
  const old = await made("a");
  const id = metadata.inodes.ofKernelNodeId(old)?.id ?? inodeId(0);
  // A remote version came; the kernel looks the name up anew, and forgets the one before.
  const { kernelNodeId } = metadata.inodes.replaceKernelNodeId(id, {});
  expect(await createFileSystem(context).lookup(CALLER, root, "a")).toMatchObject({ kernelNodeId });
  context.orphans.forgotten([{ kernelNodeId: old }]);
  await createFileSystem(context).unlink(CALLER, root, "a");
  await world.clock.advance(FORGET_GATHER_MS);
  expect((await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat.links).toBe(0);
  context.orphans.forgotten([{ kernelNodeId }]);
  await world.clock.advance(FORGET_GATHER_MS);
  expect(metadata.inodes.get(id)).toBeUndefined();
});

test("looked up again, it stays when what was open then is closed", async () => {
  const { world, context, root, made } = await worldOfFiles();
  const kernelNodeId = await made("a");
  // As it is while it is sent.
  const cacheFile = await context.cacheFiles.open(kernelNodeId, { write: false, isUse: false });
  context.orphans.forgotten([{ kernelNodeId }]);
  await world.clock.advance(FORGET_GATHER_MS);
  expect(await createFileSystem(context).lookup(CALLER, root, "a")).toMatchObject({ kernelNodeId });
  await createFileSystem(context).unlink(CALLER, root, "a");
  await cacheFile.close({ write: false });
  await world.clock.advance(FORGET_GATHER_MS);
  expect((await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat.links).toBe(0);
});

test("what the rows do not take is kept until they do", async () => {
  const { world, context, told, removed, isThere } = await worldOfFiles();
  const kernelNodeId = await removed("a");
  told.isBroken = true;
  context.orphans.forgotten([{ kernelNodeId }]);
  await world.clock.advance(FORGET_GATHER_MS);
  expect([isThere(kernelNodeId), world.complaints.length]).toEqual([true, 1]);
  told.isBroken = false;
  repeatForgets(context);
  expect(isThere(kernelNodeId)).toBe(false);
});

test("what was closed while the rows could not be changed goes when they can", async () => {
  const { context, root, told, made, isThere } = await worldOfFiles();
  const kernelNodeId = await made("a");
  const { handle } = await createFileSystem(context).open(CALLER, kernelNodeId, READING);
  await createFileSystem(context).unlink(CALLER, root, "a");
  context.orphans.forgotten([{ kernelNodeId }]);
  told.isBroken = true;
  await createFileSystem(context).release(handle);
  expect(isThere(kernelNodeId)).toBe(true);
  told.isBroken = false;
  repeatForgets(context);
  expect(isThere(kernelNodeId)).toBe(false);
});

test("one that cannot be read keeps none of the others that are forgotten with it", async () => {
  const { world, context, told, removed, isThere, forgetRows } = await worldOfFiles();
  const kernelNodeIds = [await removed("a"), await removed("b")];
  forgetRows();
  told.unreadable = 1;
  context.orphans.forgotten(kernelNodeIds.map((kernelNodeId) => ({ kernelNodeId })));
  await world.clock.advance(FORGET_GATHER_MS);
  expect(kernelNodeIds.map(isThere)).toEqual([true, false]);
  repeatForgets(context);
  expect(kernelNodeIds.map(isThere)).toEqual([false, false]);
});

test("tried again, one that still cannot be read keeps none of the others, and is kept itself", async () => {
  const { world, context, told, removed, isThere } = await worldOfFiles();
  const kernelNodeIds = [await removed("a"), await removed("b")];
  told.isBroken = true;
  context.orphans.forgotten(kernelNodeIds.map((kernelNodeId) => ({ kernelNodeId })));
  await world.clock.advance(FORGET_GATHER_MS);
  told.isBroken = false;
  told.unreadable = 1;
  repeatForgets(context);
  expect(kernelNodeIds.map(isThere)).toEqual([true, false]);
  repeatForgets(context);
  expect(kernelNodeIds.map(isThere)).toEqual([false, false]);
});
