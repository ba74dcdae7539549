import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { createLayout } from "../../src/content/layout.ts";
import { kernelNodeId, snapshotId } from "../../src/metadata/ids.ts";
import { createDiskUnderTest } from "../support/disk-under-test.ts";
import { pattern, readAll, writeAll } from "../support/files-cases.ts";
import { createMemoryUnderTest } from "./support/memory-under-test.ts";

async function setUp() {
  const { files } = await createMemoryUnderTest();
  const layout = createLayout(files, "/state/ws");
  await layout.prepare();
  return { files, layout };
}

async function collect(ids: AsyncIterable<number>): Promise<number[]> {
  const all: number[] = [];
  for await (const id of ids) all.push(id);
  return all;
}

test("the folders are made, and made again without harm", async () => {
  const { files, layout } = await setUp();
  await layout.prepare();
  expect(await files.list("/state/ws")).toEqual(["generation", "live", "quarantine"]);
});

test("the shards are spread over the disk, and a disk that cannot is no error", async () => {
  const under = await createDiskUnderTest();
  const spread: string[] = [];
  const spreadFolders = async (path: string) => {
    spread.push(path);
    await under.files.spreadFolders?.(path);
  };
  await createLayout({ ...under.files, spreadFolders }, join(under.root, "ws")).prepare();
  expect(spread.map((path) => relative(under.root, path))).toEqual(["ws/live", "ws/generation"]);
  // Not even root changes anything there.
  await under.files.spreadFolders?.("/proc");
  await under.files.spreadFolders?.(join(under.root, "nothing"));
  await under.end();
});

test("no two ids share a path, and no folder gets more than a thousand", () => {
  const layout = createLayout(createMemoryStub(), "/s");
  const paths = Array.from({ length: 5000 }, (_, id) => layout.cacheFile(kernelNodeId(id + 7)));
  expect(new Set(paths).size).toBe(5000);
  const perFolder = new Map<string, number>();
  for (const path of paths) perFolder.set(dirname(path), (perFolder.get(dirname(path)) ?? 0) + 1);
  expect(Math.max(...perFolder.values())).toBe(1000);
  expect(layout.cacheFile(kernelNodeId(12_345))).toBe("/s/live/12/12345");
  expect(layout.snapshot(snapshotId(17))).toBe("/s/generation/0/17");
});

test.each([-1, 1.5, Number.NaN, 2 ** 53])("%d is no id", (id) => {
  expect(() => createLayout(createMemoryStub(), "/s").cacheFile(kernelNodeId(id))).toThrow(`got ${id}`);
});

test("a shard is made once, for many files at once, and again after a failure", async () => {
  const { files, layout } = await setUp();
  files.fail({ path: /live\/1$/, code: "ENOSPC", on: ["makeFolder"] });
  await expect(layout.prepareFolderOf(layout.cacheFile(kernelNodeId(1001)))).rejects.toMatchObject({ code: "ENOSPC" });
  await Promise.all(
    [kernelNodeId(1001), kernelNodeId(1002), kernelNodeId(1003)].map((id) =>
      layout.prepareFolderOf(layout.cacheFile(id)),
    ),
  );
  await writeAll(files, layout.cacheFile(kernelNodeId(1001)), pattern(1));
  // Were it made or synced anew, this would be met.
  files.fail({ path: /./, code: "EIO", on: ["makeFolder", "syncFolder"] });
  await layout.prepareFolderOf(layout.cacheFile(kernelNodeId(1004)));
});

test("a new shard's name is synced before it counts as there", async () => {
  const { files, layout } = await setUp();
  files.fail({ path: /ws\/generation$/, code: "EIO", on: ["syncFolder"] });
  await expect(layout.prepareFolderOf(layout.snapshot(snapshotId(5)))).rejects.toMatchObject({ code: "EIO" });
  await layout.prepareFolderOf(layout.snapshot(snapshotId(5)));
});

test("what is on the disk is listed by id, and nothing else", async () => {
  const { files, layout } = await setUp();
  const ids = [kernelNodeId(3), kernelNodeId(999), kernelNodeId(1000), kernelNodeId(25_000)];
  for (const id of ids) {
    await layout.prepareFolderOf(layout.cacheFile(id));
    await writeAll(files, layout.cacheFile(id), pattern(1));
  }
  await writeAll(files, "/state/ws/live/stray", pattern(1));
  await writeAll(files, "/state/ws/live/7", pattern(1));
  await writeAll(files, "/state/ws/live/0/1001", pattern(1));
  await writeAll(files, "/state/ws/live/0/03", pattern(1));
  expect(await collect(layout.cacheFiles())).toEqual(ids);
  expect(await collect(layout.snapshots())).toEqual([]);
});

test("quarantine keeps every file under a name of its own", async () => {
  const { files, layout } = await setUp();
  await layout.prepareFolderOf(layout.cacheFile(kernelNodeId(1)));
  const moved = await Promise.all(
    [kernelNodeId(1), kernelNodeId(2), kernelNodeId(3)].map(async (id) => {
      await writeAll(files, layout.cacheFile(id), pattern(10, id));
      return layout.quarantine(layout.cacheFile(id), "../live of x/y");
    }),
  );
  expect(new Set(moved).size).toBe(3);
  for (const [i, path] of moved.entries()) {
    expect(dirname(path)).toBe("/state/ws/quarantine");
    expect(await readAll(files, path)).toEqual(pattern(10, i + 1));
  }
  expect(await collect(layout.cacheFiles())).toEqual([]);
});

test("a failed quarantine leaves the file where it is, and the next goes on", async () => {
  const { files, layout } = await setUp();
  await layout.prepareFolderOf(layout.cacheFile(kernelNodeId(1)));
  await writeAll(files, layout.cacheFile(kernelNodeId(1)), pattern(10));
  files.fail({ path: /live/, code: "EIO", on: ["rename"] });
  await expect(layout.quarantine(layout.cacheFile(kernelNodeId(1)), "x")).rejects.toMatchObject({ code: "EIO" });
  expect(await layout.quarantine(layout.cacheFile(kernelNodeId(1)), "x")).toBe("/state/ws/quarantine/x");
});

/** Paths alone touch no file. */
function createMemoryStub() {
  return new Proxy({} as Parameters<typeof createLayout>[0], {
    get() {
      throw new Error("a path must not need the disk");
    },
  });
}
