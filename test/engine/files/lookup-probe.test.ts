/**
 * An inode that the kernel no longer knows goes without a FORGET, after the kernel was asked once. An inode that the
 * kernel knows, or may be about to know, stays.
 */
import { expect, test } from "vitest";
import { NO_KERNEL_CACHE } from "../../../src/engine/api/index.ts";
import { KernelCacheState } from "../../../src/engine/core/index.ts";
import { createLookupProbe } from "../../../src/engine/files/lookup-probe.ts";
import { FORGET_GATHER_MS } from "../../../src/engine/files/on-forget.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { deferred } from "../../../src/lib/deferred.ts";
import { type InodeId, inodeId, type KernelNodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { CALLER, createBytesWorld, type Parts, pattern, withParts } from "../support/bytes-world.ts";

const READING = { read: true, write: false, append: false, truncate: false, exclusive: false };
const WRITING = { read: false, write: true, append: false, truncate: false, exclusive: true };
const ROUND_MS = 60_000;
/** A round, and the steps in which it goes. */
const ROUND = ROUND_MS + 5_000;

async function begin() {
  const world = await createBytesWorld();
  const asked: KernelNodeId[] = [];
  /** What the kernel has. */
  const known = new Set<KernelNodeId>();
  let hold: Promise<unknown> = Promise.resolve();
  const cache = {
    ...NO_KERNEL_CACHE,
    async unknownToKernel(kernelNodeIds: readonly KernelNodeId[]) {
      asked.push(...kernelNodeIds);
      const lacking = kernelNodeIds.filter((kernelNodeId) => !known.has(kernelNodeId));
      await hold;
      return new Set(lacking);
    },
  };
  const context: Parts = withParts(world.context, {
    kernel: new KernelCacheState(cache, world.context.metadata, world.context.runtime),
  });
  const { inodes, entries } = context.metadata;
  inodes.update(ROOT_INODE, { listed: 0 });
  const root = inodes.get(ROOT_INODE)?.kernelNodeId ?? kernelNodeId(0);
  const asking = createLookupProbe(context);
  asking.start();
  /** As it comes by the journal: no program has looked. */
  const came = (name: string) => world.addRemote(pattern(10), { name });
  /** As it goes by it. */
  const went = (name: string) => {
    const entry = entries.find(ROOT_INODE, name);
    if (entry === undefined) throw new Error(`no ${name}`);
    context.metadata.transaction(() => {
      entries.remove(entry.id);
      context.orphans.renewIfOrphan(entry.inode);
    });
  };
  const cameAndWent = (name: string) => {
    const { id } = came(name);
    went(name);
    return id;
  };
  const rows = () => [
    inodes.orphans(0, inodes.newestOrphan(), 10_000).length,
    inodes.superseded(0, inodes.newestSuperseded(), 10_000).length,
  ];
  return {
    ...{ world, context, inodes, entries, root, asking, asked, known, came, went, cameAndWent, rows },
    isThere: (id: InodeId) => inodes.get(id) !== undefined,
    pass: (milliseconds: number) => world.clock.advance(milliseconds),
    /** Answers come when it is called. */
    holdAnswers() {
      let release: (value?: unknown) => void = () => {};
      hold = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
  };
}

test("what came and went by the journal goes within two rounds; before a whole round nobody asks, then once", async () => {
  const { asked, cameAndWent, rows, pass, isThere } = await begin();
  await pass(1_000);
  const ids = ["a", "b", "c"].map(cameAndWent);
  expect(rows()).toEqual([3, 3]);
  await pass(ROUND_MS);
  expect([asked, ids.every(isThere)]).toEqual([[], true]);
  await pass(ROUND_MS + 1_000);
  // Both kernel node ids of each, once.
  expect([asked.length, new Set(asked).size, rows(), ids.some(isThere)]).toEqual([6, 6, [0, 0], false]);
  await pass(5 * ROUND);
  expect(asked).toHaveLength(6);
});

test("what the kernel has stays, for as long as it has it", async () => {
  const { known, cameAndWent, rows, pass, isThere, inodes } = await begin();
  const [kept = inodeId(0), gone = inodeId(0)] = ["kept", "gone"].map(cameAndWent);
  // A program holds on to it by the kernel node id it had before it lost its name.
  const [before = kernelNodeId(0)] = inodes.kernelNodeIds(kept);
  known.add(before);
  await pass(5 * ROUND);
  expect([isThere(kept), isThere(gone), inodes.kernelNodeIds(kept).length, rows()]).toEqual([true, false, 2, [1, 1]]);
  known.delete(before);
  await pass(ROUND);
  expect([isThere(kept), rows()]).toEqual([false, [0, 0]]);
});

test("of what has a name the former version goes, with its bytes, and nothing else", async () => {
  const { world, context, came, known, rows, pass, inodes } = await begin();
  const inode = came("a");
  for (let version = 0; version < 3; version += 1) {
    const { kernelNodeId } = world.inode(inode.id);
    await (await context.cacheFiles.open(kernelNodeId, { write: false })).close({ write: false });
    inodes.replaceKernelNodeId(inode.id, {});
  }
  const [first, second, third, current] = inodes.kernelNodeIds(inode.id);
  if (first === undefined || second === undefined || third === undefined)
    throw new Error("four kernel node ids expected");
  known.add(second);
  const hasFile = (kernelNodeId: KernelNodeId) => context.metadata.cacheFiles.get(kernelNodeId) !== undefined;
  expect([first, second, third].map(hasFile)).toEqual([true, true, true]);
  await pass(2 * ROUND);
  expect([first, second, third].map(hasFile)).toEqual([false, true, false]);
  expect([inodes.kernelNodeIds(inode.id), rows()]).toEqual([
    [second, current],
    [0, 1],
  ]);
});

test("who comes with one that is gone is told to look the name up again", async () => {
  const { context, cameAndWent, inodes, pass } = await begin();
  const [before = kernelNodeId(0), after = kernelNodeId(0)] = inodes.kernelNodeIds(cameAndWent("a"));
  await pass(2 * ROUND);
  for (const kernelNodeId of [before, after]) {
    await expect(createFileSystem(context).getattr(CALLER, kernelNodeId)).rejects.toMatchObject({ code: "ESTALE" });
    await expect(createFileSystem(context).open(CALLER, kernelNodeId, READING)).rejects.toMatchObject({
      code: "ESTALE",
    });
    context.orphans.forgotten([{ kernelNodeId }]);
  }
});

test("what comes back while the answer is on its way stays, also when a program removes it then", async () => {
  const { context, cameAndWent, root, entries, isThere, pass, holdAnswers, asked, rows } = await begin();
  const names = ["back", "lost", "other"];
  const ids = names.map(cameAndWent);
  const answer = holdAnswers();
  await pass(2 * ROUND);
  expect(asked).toHaveLength(6);
  for (const [index, name] of names.slice(0, 2).entries()) {
    entries.create(ROOT_INODE, name, ids[index] ?? inodeId(0));
    expect((await createFileSystem(context).lookup(CALLER, root, name)).kernelNodeId).toBeDefined();
  }
  await createFileSystem(context).unlink(CALLER, root, "lost");
  answer();
  await pass(1_000);
  expect([ids.map(isThere), rows()]).toEqual([
    [true, true, false],
    [2, 2],
  ]);
});

test("what a program removes while the answer about a former version is on its way stays until it is forgotten", async () => {
  const { context, came, known, root, inodes, isThere, pass, holdAnswers, asked } = await begin();
  const { id, kernelNodeId: former } = came("a");
  const { kernelNodeId } = inodes.replaceKernelNodeId(id, {});
  known.add(kernelNodeId);
  const answer = holdAnswers();
  await pass(2 * ROUND);
  expect(asked).toEqual([former]);
  await createFileSystem(context).unlink(CALLER, root, "a");
  answer();
  await pass(5 * ROUND);
  expect((await createFileSystem(context).getattr(CALLER, kernelNodeId)).stat.links).toBe(0);
  context.orphans.forgotten([{ kernelNodeId }]);
  await pass(FORGET_GATHER_MS);
  expect(isThere(id)).toBe(false);
});

test("its word that it forgot it may come before the answer, or after it", async () => {
  const { world, context, cameAndWent, inodes, isThere, pass, holdAnswers, rows } = await begin();
  const id = cameAndWent("a");
  const [before = kernelNodeId(0)] = inodes.kernelNodeIds(id);
  const answer = holdAnswers();
  await pass(2 * ROUND);
  context.orphans.forgotten([{ kernelNodeId: before }]);
  await pass(FORGET_GATHER_MS);
  expect(isThere(id)).toBe(false);
  answer();
  await pass(1_000);
  context.orphans.forgotten([{ kernelNodeId: before }]);
  await pass(FORGET_GATHER_MS);
  expect([rows(), world.complaints]).toEqual([[0, 0], []]);
});

test("what is open here is left until it is closed, what is being made until it is", async () => {
  const { context, came, went, isThere, pass } = await begin();
  const { id, kernelNodeId } = came("open");
  const cacheFile = await context.cacheFiles.open(kernelNodeId, { write: false });
  went("open");
  const made = came("made");
  const isMade = deferred<void>();
  const making = context.fileState.whileUnknownToKernel(made.kernelNodeId, () => isMade.promise);
  went("made");
  await pass(4 * ROUND);
  expect([id, made.id].map(isThere)).toEqual([true, true]);
  await cacheFile.close({ write: false });
  isMade.resolve();
  await making;
  await pass(2 * ROUND);
  expect([id, made.id].map(isThere)).toEqual([false, false]);
});

test("what was written here and is not sent stays with its name", async () => {
  const { world, context, root, inodes, isThere, pass } = await begin();
  const { handle, kernelNodeId } = await createFileSystem(context).create(CALLER, root, "a", 0o644, WRITING);
  await world.write(handle, 0, pattern(10));
  await world.close(handle);
  await pass(4 * ROUND);
  expect(isThere(inodes.ofKernelNodeId(kernelNodeId)?.id ?? inodeId(0))).toBe(true);
  expect(context.metadata.cacheFiles.get(kernelNodeId)?.bytes).toBeGreaterThan(0);
});

test("a folder in which names are left waits for them", async () => {
  const { context, entries, inodes, isThere, pass, world } = await begin();
  const { id } = inodes.create({ ...world.inode(ROOT_INODE), listed: null });
  const entry = entries.create(ROOT_INODE, "folder", id);
  const inside = entries.create(id, "inside", world.addRemote(pattern(1)).id);
  context.metadata.transaction(() => entries.remove(entry.id));
  await pass(4 * ROUND);
  expect([isThere(id), world.complaints]).toEqual([true, []]);
  context.metadata.transaction(() => entries.remove(inside.id));
  await pass(2 * ROUND);
  expect([isThere(id), world.complaints]).toEqual([false, []]);
});

test("what has its name again loses its row, and is asked about no more", async () => {
  const { cameAndWent, entries, rows, asked, isThere, pass } = await begin();
  const id = cameAndWent("a");
  entries.create(ROOT_INODE, "a", id);
  await pass(2 * ROUND);
  const { length } = asked;
  await pass(4 * ROUND);
  expect([isThere(id), rows(), length]).toEqual([true, [0, 0], 1]);
  expect(asked).toHaveLength(1);
});

test("of very many all go in one round, with a rest between steps, which make way for programs", async () => {
  const { context, cameAndWent, rows, pass, asked } = await begin();
  for (let index = 0; index < 1_000; index += 1) cameAndWent(`file-${index}`);
  await pass(2 * ROUND_MS);
  const inOneStep = asked.length;
  expect(inOneStep).toBeGreaterThan(0);
  expect(inOneStep).toBeLessThan(1_000);
  for (let step = 0; step < 5; step += 1) {
    context.foregroundThrottle.noteProgramTime(1_000, false);
    await pass(1_000);
  }
  await pass(20_000);
  expect(rows()).toEqual([0, 0]);
  expect(asked).toHaveLength(2_000);
});

test("ended while the answer is on its way, nothing more is done", async () => {
  const { world, asking, cameAndWent, isThere, pass, holdAnswers, asked } = await begin();
  const id = cameAndWent("a");
  const answer = holdAnswers();
  await pass(2 * ROUND);
  expect(asked).toHaveLength(2);
  asking.stop();
  answer();
  await pass(4 * ROUND);
  expect([isThere(id), asked.length, world.complaints]).toEqual([true, 2, []]);
});

test("a kernel that cannot be asked changes nothing", async () => {
  const { context: before, cameAndWent, isThere, pass, asking } = await begin();
  asking.stop();
  const id = cameAndWent("a");
  createLookupProbe({
    ...before,
    kernel: new KernelCacheState(NO_KERNEL_CACHE, before.metadata, before.runtime),
  }).start();
  await pass(4 * ROUND);
  expect(isThere(id)).toBe(true);
});
