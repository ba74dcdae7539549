/** Names no program can give: who has one is not shown, and comes to be seen again under another. */
import { expect, test } from "vitest";
import { nameProblem } from "../../../src/contract/names.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { refreshNode } from "../../../src/engine/sync/fetch-node.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { inodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { CALLER, withParts } from "../support/bytes-world.ts";
import { inodeOfFolder, make, makeWorld, nodeOf, remove, rowOf } from "../support/rows-world.ts";

const NAMES = ["", ".", "..", "a/b", "a\0b", "x".repeat(256), "\ud800"];

async function begin() {
  const world = await makeWorld();
  const { context, metadata } = world;
  metadata.inodes.update(ROOT_INODE, { listed: 1 });
  context.observer.node(nodeOf("f"));
  const shown = async () => {
    const root = metadata.inodes.get(ROOT_INODE);
    const { handle } = await createFileSystem(context).opendir(CALLER, root?.kernelNodeId ?? kernelNodeId(0));
    const lines = await createFileSystem(context).readdir(CALLER, handle, 2, 100, false);
    return lines.map(({ name }) => name);
  };
  return { world, context, metadata, shown };
}

for (const name of NAMES) {
  test(`renamed to ${JSON.stringify(name.slice(0, 9))} and back`, async () => {
    const { context, metadata, shown } = await begin();
    const inode = metadata.entries.find(ROOT_INODE, "f")?.inode;
    context.observer.node(nodeOf("f", { name, revision: 2 }));
    expect(await shown()).toEqual([]);
    expect(metadata.nodes.dirty(9)).toEqual([]);
    context.observer.node(nodeOf("f", { name: "g", revision: 3 }));
    expect(await shown()).toEqual(["g"]);
    expect(metadata.entries.find(ROOT_INODE, "g")?.inode).toBe(inode);
  });
}

test("what is new and what waits for its name is not shown under an earlier one", async () => {
  const { world, context, metadata, shown } = await begin();
  context.observer.node(nodeOf("new", { name: "a/b" }));
  expect(await shown()).toEqual(["f"]);
  context.observer.node(nodeOf("new", { name: "n", revision: 2 }));
  expect(await shown()).toEqual(["f", "n"]);

  make(world, ROOT_INODE, "mine");
  context.observer.node(nodeOf("waits", { name: "mine" }));
  expect(metadata.arrivals.count()).toBe(1);
  context.observer.node(nodeOf("waits", { name: "", revision: 2 }));
  remove(world, ROOT_INODE, "mine");
  context.observer.retryArrivals("", 9);
  expect(await shown()).toEqual(["f", "n"]);
  expect(metadata.arrivals.count()).toBe(0);
});

test("written here, deleted there: kept under a name a file can have", async () => {
  const { world, context, metadata, shown } = await begin();
  context.observer.node(nodeOf("f", { name: "a/b.txt", revision: 2 }));
  const entry = rowOf(world, "f").entry;
  const inode = entry === null ? undefined : metadata.entries.get(entry)?.inode;
  metadata.inodes.update(inode ?? inodeId(0), { content: "dirty", hash: "other", changes: 1 });
  metadata.nodes.update(rowOf(world, "f").id, { dirtySince: rowTime(1), due: rowTime(1) });
  context.observer.deletion("f", 3, 9);
  const [name] = await shown();
  expect(name).toMatch(/^a-b \(conflict, .*\)\.txt$/);
  expect(nameProblem(name ?? "")).toBeUndefined();
});

test("moved into a folder that is not shown, a node is not asked for again and again", async () => {
  const { context, metadata, shown } = await begin();
  const folder = nodeOf("d", { kind: "folder", name: "a/b" });
  const moved = nodeOf("f", { parentId: "d", revision: 2 });
  const client = { ...context.client, getNode: async (id: string) => (id === "d" ? folder : moved) };
  metadata.rereads.add("f");
  for (const reread of metadata.rereads.due(rowTime(0), 9)) {
    await refreshNode(withParts(context, { client }), reread, new AbortController().signal);
  }
  expect(metadata.rereads.count()).toBe(0);
  expect(await shown()).toEqual([]);
});

test("a folder that had stepped aside, and what moves into it, are shown", async () => {
  const { world, context, metadata, shown } = await begin();
  const folder = (id: string, change: object) => nodeOf(id, { kind: "folder", ...change });
  context.observer.node(folder("a", {}));
  metadata.inodes.update(inodeOfFolder(world, "a"), { listed: 1 });
  context.observer.node(folder("b", { parentId: "a" }));
  // To a folder nobody here knows yet; another one has its name by then.
  context.observer.node(folder("b", { parentId: "unknown", revision: 2 }));
  context.observer.node(folder("other", { parentId: "a", name: "b" }));
  context.observer.node(folder("a", { parentId: "b", revision: 2 }));
  expect(await shown()).toEqual(["f", expect.stringMatching(/^b \(conflict, .*\)$/)]);
  expect(metadata.entries.find(inodeOfFolder(world, "b"), "a")?.inode).toBe(inodeOfFolder(world, "a"));
});
