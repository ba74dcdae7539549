/** Where only heads can be read: content that is being evicted, and a program that needs all of it meanwhile. */
import { expect, test } from "vitest";
import { dropCacheFile } from "../../../src/engine/files/evict.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import type { KernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type BytesWorld, CALLER, createBytesWorld } from "../support/bytes-world.ts";

/** A file of such a gateway, all of it here, and another one. */
async function begin() {
  const world = await createBytesWorld();
  const { context, gateway } = world;
  const features = { ...context.client.features, isFull: false };
  Object.assign(context, { client: { getContent: gateway.client.getContent, features } });
  const { id, kernelNodeId } = world.addRemote(Buffer.from("only there"), { name: "a" });
  world.addRemote(Buffer.from("another"), { name: "b" });
  context.metadata.inodes.update(ROOT_INODE, { listed: 1 });
  await world.readAll(world.inode(id));
  const missing = () => context.metadata.cacheFiles.get(kernelNodeId)?.missing;
  expect(missing()).toEqual([]);
  return { world, context, id, kernelNodeId, missing };
}

/** In place of the other one, whose node it gets. */
function replace({ context, inode }: BytesWorld): Promise<void> {
  const parent = inode(ROOT_INODE).kernelNodeId;
  return createFileSystem(context).rename(
    CALLER,
    { parent, name: "a" },
    { parent, name: "b" },
    { noReplace: false, exchange: false },
  );
}

test("a file that takes another's name while it is evicted is brought here again first", async () => {
  const { world, context, id, kernelNodeId, missing } = await begin();
  const { metadata } = context;
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { runtime } = context;
  Object.assign(context, {
    runtime: {
      ...runtime,
      files: { ...runtime.files, remove: (path: string) => held.then(() => world.files.remove(path)) },
    },
  });
  const evicting = dropCacheFile(context, { kernelNodeId });
  for (let turns = 0; turns < 100; turns += 1) await undefined;
  const replacing = replace(world);
  for (let turns = 0; turns < 100; turns += 1) await undefined;
  goOn();
  await Promise.all([evicting, replacing]);
  expect(metadata.entries.find(ROOT_INODE, "b")?.inode).toBe(id);
  expect(missing()).toEqual([]);
});

test.each(["open", "truncate"] as const)("all of it is here when it may be written to: %s", async (how) => {
  const { world, context, id, kernelNodeId, missing } = await begin();
  // Eviction has chosen it, and its turn comes at the end of what brings it here.
  let evicting: Promise<boolean> | undefined;
  context.fileState.afterClose.set(kernelNodeId, () => {
    evicting = dropCacheFile(context, { kernelNodeId });
  });
  let missingThen: readonly number[] | undefined;
  context.runtime.step = (label) => {
    if (label === "open: marked") missingThen = missing();
  };
  if (how === "open") await world.open(world.inode(id), { write: true });
  else await world.truncate(id, 4);
  await evicting;
  expect(missingThen).toEqual([]);
});

/** Its bytes come before it gets a node that has to be given them. */
async function replacesWhole(world: BytesWorld, kernelNodeId: KernelNodeId): Promise<void> {
  const { context } = world;
  await replace(world);
  expect(context.metadata.cacheFiles.get(kernelNodeId)?.missing).toEqual([]);
  expect((await context.runtime.files.stat(context.paths.cacheFile(kernelNodeId))).size).toBe("only there".length);
}

test("evicted, and the rows could not be told: moved over another, it is brought here again first", async () => {
  const { world, context, kernelNodeId } = await begin();
  const { cacheFiles } = context.metadata;
  const { remove, update } = cacheFiles;
  const refuse = () => {
    throw new Error("the rows take no changes");
  };
  Object.assign(cacheFiles, { remove: refuse, update: refuse });
  await expect(dropCacheFile(context, { kernelNodeId })).rejects.toThrow("the rows take no changes");
  Object.assign(cacheFiles, { remove, update });
  await replacesWhole(world, kernelNodeId);
  expect(context.fileState.evicting.size).toBe(0);
});

test("a crash while it is evicted: moved over another before the files were looked at, it is brought here again first", async () => {
  const { world, context, kernelNodeId } = await begin();
  let next: BytesWorld | undefined;
  context.runtime.step = (label) => {
    if (label === "evict: file gone") next ??= world.crash();
  };
  await dropCacheFile(context, { kernelNodeId }).catch(() => {});
  if (next === undefined) throw new Error("nothing was evicted");
  Object.assign(next.context, { client: context.client });
  await replacesWhole(next, kernelNodeId);
});

test("what could not be evicted is here", async () => {
  const { world, context, id, kernelNodeId } = await begin();
  world.files.fail({ path: /live/, code: "EIO", on: ["remove"] });
  await expect(dropCacheFile(context, { kernelNodeId })).rejects.toThrow("EIO");
  expect(context.fileState.evicting.size).toBe(0);
  expect(Buffer.from(await world.readAll(world.inode(id))).toString()).toBe("only there");
});
