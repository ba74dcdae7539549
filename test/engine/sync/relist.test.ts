/** Known folders whose list is to be read again: until when, and what a failure does to the others. */
import { expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { requestRelist } from "../../../src/engine/sync/request-relist.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { createBytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import { hearOnce, nodeOf } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;
const ROOT = nodeOf("root", { kind: "folder", parentId: null, name: "" });

const listOf = (items: readonly Node[]) => ({
  items: [...items],
  totalCount: items.length,
  pageNo: 1,
  pageSize: 1000,
  asOf: 5,
  next: null,
});

/** A root that is known, and a folder in it that is. */
async function begin(listFolder: Client["listFolder"]) {
  const world = await createBytesWorld();
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, ROOT));
  const readJournal: Client["readJournal"] = async () => ({
    items: [],
    totalCount: 0,
    pageNo: 1,
    pageSize: 500,
    asOf: 5,
  });
  const client = { ...world.context.client, listFolder, readJournal };
  const context: Parts = withParts(world.context, { client });
  metadata.inodes.update(ROOT_INODE, { listed: 0 });
  const about = { attributes: {}, size: 0, hash: null, originNode: null, originVersion: null, atime: "0", ctime: "0" };
  const folder = metadata.inodes.create({ kind: "folder", content: "clean", ...about, listed: 0 }).id;
  const entry = metadata.entries.create(ROOT_INODE, "f", folder);
  metadata.nodes.create(born(entry.id, nodeOf("f", { kind: "folder", parentId: "root" })));
  const namesIn = (inode: InodeId) => metadata.entries.list(inode, 0, 100).flatMap(({ name }) => name || []);
  return { context, metadata, folder, namesIn, clock: world.clock };
}

test("a marked folder is listed once, and is known all the while", async () => {
  const lists: string[] = [];
  const { context, metadata, folder, namesIn } = await begin(async (id) => {
    lists.push(id);
    return listOf([nodeOf("n", { parentId: "f" })]);
  });
  expect(context.nodeReader.isRelistDue()).toBe(false);
  let woken = 0;
  context.activity.onWake(() => {
    woken += 1;
  });
  requestRelist(context, folder);
  expect([woken, context.nodeReader.isRelistDue(), metadata.inodes.get(folder)?.listed]).toEqual([1, true, 0]);
  await hearOnce(context);
  await hearOnce(context);
  expect([lists, namesIn(folder), context.nodeReader.isRelistDue()]).toEqual([["f"], ["n"], false]);
});

test("one that is not completely known is not marked: it is listed when somebody looks", async () => {
  const { context, metadata, folder } = await begin(async () => listOf([]));
  metadata.inodes.update(folder, { listed: null });
  requestRelist(context, folder);
  expect(context.nodeReader.isRelistDue()).toBe(false);
});

test("a list that was under way when it was marked does not do", async () => {
  let answer: () => void = () => {};
  let lists = 0;
  const { context, metadata, folder, namesIn } = await begin(async () => {
    lists += 1;
    if (lists > 1) return listOf([nodeOf("n", { parentId: "f" })]);
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return listOf([]);
  });
  metadata.inodes.update(folder, { listed: null });
  const first = context.folders.complete(folder, SIGNAL);
  requestRelist(context, folder);
  const marked = hearOnce(context);
  answer();
  await Promise.all([first, marked]);
  expect([lists, namesIn(folder), context.nodeReader.isRelistDue()]).toEqual([2, ["n"], false]);
});

test("one that cannot be listed keeps no other from it, and is tried again", async () => {
  let isForbidden = true;
  const { context, folder, namesIn, clock } = await begin(async (id) => {
    if (id === "f" && isForbidden) throw new RemoteError("forbidden", "no grant");
    return listOf([
      nodeOf(`n of ${id}`, { parentId: id }),
      ...(id === "root" ? [nodeOf("f", { kind: "folder" })] : []),
    ]);
  });
  requestRelist(context, folder);
  requestRelist(context, ROOT_INODE);
  await hearOnce(context);
  expect([namesIn(folder), namesIn(ROOT_INODE), context.nodeReader.isRelistDue()]).toEqual([
    [],
    ["f", "n of root"],
    false,
  ]);
  isForbidden = false;
  await clock.advance(60_000);
  expect(context.nodeReader.isRelistDue()).toBe(true);
  await hearOnce(context);
  expect([namesIn(folder), context.nodeReader.isRelistDue()]).toEqual([["n of f"], false]);
});

test("while nobody answers it stays marked, and leaves the others their turn", async () => {
  let isAway = true;
  const { context, folder, namesIn, clock } = await begin(async (id) => {
    if (id === "f" && isAway) throw new RemoteError("offline", "nobody is there");
    return listOf([
      nodeOf(`n of ${id}`, { parentId: id }),
      ...(id === "root" ? [nodeOf("f", { kind: "folder" })] : []),
    ]);
  });
  requestRelist(context, folder);
  requestRelist(context, ROOT_INODE);
  await expect(hearOnce(context)).rejects.toThrow();
  expect(context.nodeReader.isRelistDue()).toBe(true);
  await hearOnce(context);
  expect([namesIn(folder), namesIn(ROOT_INODE), context.nodeReader.isRelistDue()]).toEqual([
    [],
    ["f", "n of root"],
    false,
  ]);
  isAway = false;
  await clock.advance(10_000);
  await hearOnce(context);
  expect([namesIn(folder), context.nodeReader.isRelistDue()]).toEqual([["n of f"], false]);
});
