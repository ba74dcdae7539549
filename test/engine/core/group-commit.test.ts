/** What the loop does for many at once: one commit, one sync; and each still fails alone. */
import { expect, test } from "vitest";
import { createGroupCommit, GROUP_COMMIT_MAX_MS, MANY } from "../../../src/engine/core/group-commit.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import { SqliteError } from "../../../src/lib/sqlite/index.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf } from "../support/bytes-world.ts";
import { holdNext } from "../support/hold-next.ts";

const bytesOf = (index: number) => Buffer.from(`content ${index}`);

async function written(count: number): Promise<{ world: BytesWorld; inodes: InodeId[] }> {
  const world = await createBytesWorld();
  const inodes: InodeId[] = [];
  for (let index = 0; index < count; index += 1) {
    const { inode, handle } = await world.create();
    await world.write(handle, 0, bytesOf(index));
    await world.close(handle);
    inodes.push(inode.id);
  }
  return { world, inodes };
}

/** Counts calls of syncs from now on. */
function countSyncs({ context }: BytesWorld) {
  const counts = { disk: 0, folder: 0 };
  const { files } = context.runtime;
  const { syncDisk, syncFolder } = files;
  Object.assign(files, {
    syncDisk: (path: string) => {
      counts.disk += 1;
      return syncDisk(path);
    },
    syncFolder: (path: string) => {
      counts.folder += 1;
      return syncFolder(path);
    },
  });
  return counts;
}

const snapshotAll = (world: BytesWorld, inodes: readonly InodeId[]) =>
  Promise.allSettled(inodes.map((id) => world.context.snapshots.take(id, CALLER.signal)));

test("many snapshots at once share one sync and are whole", async () => {
  const { world, inodes } = await written(20);
  const counts = countSyncs(world);
  const results = await snapshotAll(world, inodes);
  expect(results).toEqual(inodes.map(() => ({ status: "fulfilled", value: "taken" })));
  expect(counts).toEqual({ disk: 1, folder: 0 });
  for (const [index, id] of inodes.entries()) {
    expect(world.inode(id)).toMatchObject({ hash: hashOf(bytesOf(index)), synced: "durable" });
  }
});

test("one snapshot is synced by itself, its name with it", async () => {
  const { world, inodes } = await written(1);
  const counts = countSyncs(world);
  await snapshotAll(world, inodes);
  expect(counts).toEqual({ disk: 0, folder: 1 });
});

test("where the disk fails as a whole, each file is synced, and only the one that fails gets no snapshot", async () => {
  const { world, inodes } = await written(8);
  const bad = inodes[3];
  const path = world.context.paths.cacheFile(world.inode(bad).kernelNodeId);
  world.files.fail({ path: /^\/state$/, code: "EIO", on: ["syncFolder"], times: Number.POSITIVE_INFINITY });
  world.files.fail({ path: new RegExp(`${path}$`), code: "EIO", on: ["sync"] });
  const results = await snapshotAll(world, inodes);
  expect(results.map(({ status }) => status)).toEqual(inodes.map((id) => (id === bad ? "rejected" : "fulfilled")));
  expect(inodes.filter((id) => world.inode(id).hash === null)).toEqual([bad]);
});

test("after the disk failed as a whole each file is synced by itself: it tells of a failure once only", async () => {
  const { world, inodes } = await written(16);
  const counts = countSyncs(world);
  world.files.fail({ path: /^\/state$/, code: "EIO", on: ["syncFolder"], times: 1 });
  for (const some of [inodes.slice(0, 8), inodes.slice(8)]) await snapshotAll(world, some);
  expect(counts.disk).toBe(1);
  expect(inodes.filter((id) => world.inode(id).synced !== "durable")).toEqual([]);
});

for (const isOpenStill of [true, false]) {
  test(`a reader ${isOpenStill ? "hears" : "heard"}, while the snapshot waits for its turn, that bytes were lost: it does not count`, async () => {
    const { world, inodes } = await written(8);
    const { context, files } = world;
    const held = holdNext(context.runtime.files, "syncDisk");
    const first = snapshotAll(world, inodes.slice(0, 4));
    await world.clock.settle();
    expect(held.isReached()).toBe(true);
    const second = snapshotAll(world, inodes.slice(4));
    await world.clock.settle();
    const bad = inodes[5];
    const { kernelNodeId } = world.inode(bad);
    expect([context.groupSync.waiting.length, context.cacheFiles.get(kernelNodeId)?.use.opens]).toEqual([4, 1]);
    files.fail({ path: new RegExp(`${context.paths.cacheFile(kernelNodeId)}$`), code: "EIO", on: ["sync"] });
    const reader = await world.open(world.inode(bad));
    await expect(createFileSystem(context).fsync(CALLER, reader, false)).rejects.toThrow("EIO");
    if (!isOpenStill) await world.close(reader);
    held.goOn();
    expect((await first).map(({ status }) => status)).toEqual(Array(4).fill("fulfilled"));
    const results = await second;
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(world.inode(bad).synced).not.toBe("durable");
  });
}

/** Changes each inode in one commit. The change of the second one fails. */
function changeAll({ context }: BytesWorld, inodes: readonly InodeId[], failure: Error) {
  return Promise.allSettled(
    inodes.map((id, index) =>
      context.groupCommit(() => {
        context.metadata.inodes.update(id, { originNode: `n${index}` });
        if (index === 1) throw failure;
        return index;
      }),
    ),
  );
}

test("where one of the changes meets damage none is committed", async () => {
  const { world, inodes } = await written(3);
  const damage = new SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
  const results = await changeAll(world, inodes, damage);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(inodes.map((id) => world.inode(id).originNode)).toEqual([null, null, null]);
});

test("of changes that are committed together one fails, and only what it did is undone", async () => {
  const { world, inodes } = await written(3);
  const results = await changeAll(world, inodes, new Error("a mistake"));
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(inodes.map((id) => world.inode(id).originNode)).toEqual(["n0", null, "n2"]);
});

for (const underWay of [MANY, MANY - 1]) {
  test(`with ${underWay} requests under way, changes one after the other ${underWay < MANY ? "have a commit each" : "share one"}`, async () => {
    const world = await createBytesWorld();
    const { metadata, runtime } = world.context;
    let commits = 0;
    const counted = {
      ...metadata,
      transaction: <T>(change: () => T) => {
        commits += 1;
        return metadata.transaction(change);
      },
    };
    const together = createGroupCommit(runtime, counted, { size: underWay });
    // The first waits for nobody.
    await together(() => {});
    const others = Promise.all(
      [1, 2, 3].map(async (at) => {
        await sleep(runtime, at);
        await together(() => {});
      }),
    );
    await world.clock.advance(GROUP_COMMIT_MAX_MS);
    await others;
    expect(commits).toBe(underWay < MANY ? 4 : 2);
  });
}

test("what is done now takes along what waits, before it, in one commit", async () => {
  const world = await createBytesWorld();
  const { metadata, runtime } = world.context;
  const { settings } = metadata;
  const together = createGroupCommit(runtime, metadata, { size: MANY });
  const waits = together(() => settings.set("cursor", "1"));
  expect(settings.getNumber("cursor")).toBe(0);
  expect(together.now(() => settings.getNumber("cursor"))).toBe(1);
  await waits;
  // Nothing is left for the time that was planned.
  settings.set("cursor", "0");
  await world.clock.advance(GROUP_COMMIT_MAX_MS);
  expect(settings.getNumber("cursor")).toBe(0);
});

test("what waits is done though what is done now fails, and each that waits fails alone", async () => {
  const world = await createBytesWorld();
  const { metadata, runtime } = world.context;
  const { settings } = metadata;
  const together = createGroupCommit(runtime, metadata, { size: MANY });
  const waiting = [
    together(() => settings.set("cursor", "1")),
    together(() => {
      settings.set("indexed", "1");
      throw new Error("its own");
    }),
  ];
  const fails = () =>
    together.now(() => {
      settings.set("written", "1");
      throw new Error("now");
    });
  expect(fails).toThrow("now");
  const results = await Promise.allSettled(waiting);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(["cursor", "indexed", "written"].map((key) => settings.getNumber(key as "cursor"))).toEqual([1, 0, 0]);
});
