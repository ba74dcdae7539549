/** The names of the whole workspace are read in the background, so that every folder can be listed offline. */
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { createTreePrefetch } from "../../../src/engine/ops/index.ts";
import { type InodeId, inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { nodeOf } from "../../support/rows-world.ts";
import { createBytesWorld, type Parts, withParts } from "../start/bytes-world.ts";

const folderOf = (id: string, parentId: string | null) =>
  nodeOf(id, { kind: "folder", head: null, contentHash: null, size: 0, parentId, name: id });
const filesIn = (parentId: string, count: number) =>
  Array.from({ length: count }, (_, at) => nodeOf(`${parentId}/${at}`, { name: `f${at}`, parentId }));

/** Two folders with three each, each of those with four files: 2 + 6 + 24 names. */
function smallTree(): Map<string, readonly Node[]> {
  const tree = new Map<string, readonly Node[]>();
  const below = (parent: string, names: readonly string[]) => {
    tree.set(
      parent,
      names.map((name) => folderOf(name, parent)),
    );
    return names;
  };
  for (const name of below("root", ["a", "b"])) {
    for (const inner of below(name, [`${name}1`, `${name}2`, `${name}3`])) tree.set(inner, filesIn(inner, 4));
  }
  return tree;
}
const NAMES = 32;

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function begin(namesAhead: number, tree = smallTree()) {
  const world = await createBytesWorld({ namesAhead });
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, folderOf("root", null)));
  const asked: string[] = [];
  const failing = new Set<string>();
  let under = 0;
  let most = 0;
  const listFolder: Client["listFolder"] = async (id, options) => {
    asked.push(id);
    most = Math.max(most, ++under);
    await new Promise<void>((resolve) => world.clock.setTimer(20, resolve));
    under -= 1;
    if (failing.delete(id)) throw new RemoteError("server", "no time");
    const all = tree.get(id) ?? [];
    const from = Number(options?.after ?? 0);
    const next = from + 1000 < all.length ? String(from + 1000) : null;
    const items = all.slice(from, from + 1000);
    return { items, totalCount: all.length, pageNo: 1, pageSize: 1000, asOf: 5, next };
  };
  const readJournal = async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 500, asOf: 5 });
  const context: Parts = withParts(world.context, { client: { ...world.context.client, listFolder, readJournal } });
  const prefetch = createTreePrefetch(context);
  let hasEnded = false;
  const inodeOf = (parent: InodeId, name: string) => metadata.entries.find(parent, name)?.inode ?? inodeId(0);
  stops.push(() => {
    prefetch.stop();
    context.cacheFiles.stop();
  });
  return {
    context,
    prefetch,
    asked,
    failing,
    start: () => void prefetch.run().then(() => (hasEnded = true)),
    hasEnded: () => hasEnded,
    most: () => most,
    inodeOf,
    /** So much time passes. */
    async pass(milliseconds: number) {
      for (let passed = 0; passed < milliseconds; passed += 10) await world.clock.advance(10);
    },
    known: () => prefetch.rest(),
  };
}

test("each folder is listed once, a few at a time, until all are known", async () => {
  const it = await begin(1000);
  expect(it.known()).toBe("ahead");
  it.start();
  await it.pass(1000);
  expect(it.known()).toBe("all");
  expect(it.context.metadata.entries.count()).toBe(NAMES + 1);
  expect([...it.asked].sort()).toEqual(["a", "a1", "a2", "a3", "b", "b1", "b2", "b3", "root"]);
  expect(it.most()).toBe(3);
  // At rest nothing is asked.
  await it.pass(60_000);
  expect(it.asked).toHaveLength(9);
  it.prefetch.stop();
  await it.pass(10);
  expect(it.hasEnded()).toBe(true);
});

test("subfolders of what a program looked into last come first", async () => {
  const it = await begin(1000);
  for (const name of ["root", "a", "b"]) {
    const folder = name === "root" ? ROOT_INODE : it.inodeOf(ROOT_INODE, name);
    const list = it.context.folders.complete(folder, new AbortController().signal);
    await it.pass(30);
    await list;
  }
  it.context.folders.visit(it.inodeOf(ROOT_INODE, "b"));
  it.start();
  await it.pass(1000);
  expect(it.asked.slice(3)).toEqual(["b1", "b2", "b3", "a1", "a2", "a3"]);
});

test("it ends at the number of names, in the middle of a large folder too; what programs look into is read all the same", async () => {
  const tree = smallTree();
  tree.set("a", filesIn("a", 5000));
  const it = await begin(2000, tree);
  it.start();
  await it.pass(30_000);
  expect(it.asked.filter((id) => id === "a")).toHaveLength(2);
  expect(it.known()).toBe("visited");
  const count = it.context.metadata.entries.count();
  expect([count >= 2000, count < 3100]).toEqual([true, true]);
  const list = it.context.folders.complete(it.inodeOf(ROOT_INODE, "a"), new AbortController().signal);
  await it.pass(1000);
  await list;
  expect(it.context.metadata.entries.count()).toBeGreaterThan(5000);
});

test("0: nothing is read that no program asked for", async () => {
  const it = await begin(0);
  it.start();
  await it.pass(60_000);
  expect([it.asked, it.known(), it.hasEnded()]).toEqual([[], "visited", true]);
});

test("while the gateway does not answer nothing is asked; what failed is tried again", async () => {
  const it = await begin(1000);
  it.failing.add("b");
  const { network } = it.context;
  network.failed(new RemoteError("offline", "no way"));
  it.start();
  await it.pass(60_000);
  expect(it.asked).toEqual([]);
  network.isThere();
  await it.pass(120_000);
  expect(it.asked.filter((id) => id === "b")).toHaveLength(2);
  expect(it.known()).toBe("all");
});

test("a gateway that refuses every list is asked now and then", async () => {
  const it = await begin(1000);
  it.start();
  await it.pass(100);
  for (const id of ["a1", "a2", "a3", "b1", "b2", "b3", "a", "b"]) it.failing.add(id);
  const before = it.asked.length;
  await it.pass(4000);
  expect(it.asked.length - before).toBeLessThanOrEqual(3);
});

test("a program that looks into a folder joins the list that is under way", async () => {
  const it = await begin(1000);
  it.start();
  await it.pass(10);
  expect(it.asked).toEqual(["root"]);
  const list = it.context.folders.complete(ROOT_INODE, new AbortController().signal);
  await it.pass(30);
  await list;
  expect(it.asked.filter((id) => id === "root")).toHaveLength(1);
});
