/** The kernel is told of names it knew, of negative entries, after a daemon's death of any name, and of attributes. */
import { expect, test } from "vitest";
import type { KernelCache } from "../../../src/engine/api/index.ts";
import { KernelCacheState } from "../../../src/engine/core/invalidate.ts";
import { LIVE_MS } from "../../../src/engine/host/index.ts";
import { inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { NEW_INODE } from "../../support/new-inode.ts";
import { createBytesWorld } from "../support/bytes-world.ts";
import { inodeOfFolder, makeWorld, nodeOf } from "../support/rows-world.ts";

async function begin() {
  const { context: base, clock } = await createBytesWorld();
  const told: string[] = [];
  const cache: KernelCache = {
    expiresNames: true,
    tell({ names }) {
      for (const { name, isGone, wasThere } of names) {
        told.push(`${isGone() ? "gone" : wasThere ? "changed" : "came"} ${name}`);
      }
    },
    everything: () => void told.push("everything"),
  };
  const context = { ...base, kernel: new KernelCacheState(cache, base.metadata, base.runtime) };
  context.metadata.changed.onTell((changed) => context.kernel.invalidate(changed));
  const { entries, inodes } = context.metadata;
  const make = (name: string) => {
    const { id } = inodes.create({ ...NEW_INODE, kind: "folder" });
    return context.metadata.transaction(() => entries.create(ROOT_INODE, name, id));
  };
  const said = () => told.splice(0);
  return { context, clock, make, said };
}

test("a name that came is told where the kernel has a negative entry, once", async () => {
  const { context, make, said } = await begin();
  expect(context.kernel.noteNegative(ROOT_INODE, "a")).toBe(true);
  make("a");
  make("b");
  expect(said()).toEqual(["came a"]);
});

test("when nothing is sure any more, each negative entry is named", async () => {
  const { context, said } = await begin();
  context.kernel.noteNegative(ROOT_INODE, "a");
  context.kernel.noteNegative(ROOT_INODE, "b");
  context.kernel.expireAll();
  expect(said()).toEqual(["came a", "came b", "everything"]);
  context.kernel.expireAll();
  expect(said()).toEqual(["everything"]);
});

test("the negative entries of a daemon before nobody knows: each name that comes is told, as long as it may be remembered", async () => {
  const { context, clock, make, said } = await begin();
  context.kernel.negativeUnknown();
  make("a");
  expect(said()).toEqual(["came a"]);
  await clock.advance(LIVE_MS);
  make("b");
  expect(said()).toEqual([]);
});

test("no more negative entries are let be remembered than are remembered here", async () => {
  const { context, clock } = await begin();
  for (let i = 0; i < 50_000; i += 1) context.kernel.noteNegative(ROOT_INODE, `${i}`);
  expect(context.kernel.noteNegative(ROOT_INODE, "one more")).toBe(false);
  expect(context.kernel.noteNegative(ROOT_INODE, "7")).toBe(true);
  await clock.advance(LIVE_MS + 1);
  for (let i = 0; i < 50_000; i += 1) expect(context.kernel.noteNegative(ROOT_INODE, `another ${i}`)).toBe(true);
});

test("folders are counted where all are known, and the kernel is told when others change how many there are", async () => {
  const world = await makeWorld();
  const { context, metadata } = world;
  const { inodes } = metadata;
  const told = new Set<number>();
  metadata.changed.onTell((changed) => {
    for (const id of changed.inodes) told.add(id);
  });
  const observe = (id: string, parentId: string, revision = 1) =>
    metadata.transaction(() => context.observer.node(nodeOf(id, { kind: "folder", path: "", parentId, revision })));
  for (const id of ["a", "b"]) observe(id, "root");
  const folders = ["a", "b"].map((id) => inodeOfFolder(world, id));
  const links = async () => Promise.all(folders.map(async (id) => (await world.stat(id)).links));
  const after = async (change: () => void) => {
    told.clear();
    change();
    return [await links(), folders.map((id) => told.has(id))];
  };
  expect(await links()).toEqual([1, 1]);
  expect(await after(() => observe("x", "a"))).toEqual([
    [1, 1],
    [true, false],
  ]);
  expect(await after(() => folders.map((id) => inodes.update(id, { listed: 1 })))).toEqual([
    [3, 2],
    [true, true],
  ]);
  expect(await after(() => observe("y", "a"))).toEqual([
    [4, 2],
    [true, false],
  ]);
  expect(await after(() => observe("y", "b", 2))).toEqual([
    [3, 3],
    [true, true],
  ]);
  expect(await after(() => inodes.update(folders[0] ?? inodeId(0), { listed: 2 }))).toEqual([
    [3, 3],
    [false, false],
  ]);
});
