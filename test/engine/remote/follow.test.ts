/** One node or folder that cannot be read, and what the others then hear; deletions that are remembered. */
import { describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { SETTLE_MS } from "../../../src/contract/features.ts";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import { MANY } from "../../../src/engine/core/index.ts";
import { followOnce } from "../../../src/engine/remote/follow.ts";
import { pollFolders } from "../../../src/engine/remote/poll.ts";
import { contentOfNode } from "../../../src/engine/sync/index.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { attemptId, inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { PLAIN } from "../../support/features.ts";
import { createBytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import { nodeOf as anyNodeOf } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;
const TIME = "2026-01-01T00:00:00.000Z";

const nodeOf = (id: string, change: Partial<Node> = {}) => anyNodeOf(id, { kind: "folder", path: `/${id}`, ...change });

function entryOf({ id, revision, parentId, name }: Node, position: number, kind = "updated"): JournalEntry {
  return { position, time: TIME, kind, nodeId: id, revision, parentId, name };
}

/** Folders a and b are known below the root; `client` answers instead of the scripted one. */
async function begin(client: Partial<Client>) {
  const world = await createBytesWorld();
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, nodeOf("root", { parentId: null, name: "" })));
  const context: Parts = withParts(world.context, { client: { ...world.context.client, ...client } });
  for (const id of ["a", "b"]) context.observer.node(nodeOf(id));
  const names = () =>
    metadata.entries
      .list(ROOT_INODE, 15, 10)
      .map(({ name }) => name)
      .sort();
  return { context, metadata, clock: world.clock, names };
}

const page = (items: JournalEntry[]) => ({ items, totalCount: items.length, pageNo: 1, pageSize: 500, asOf: 9 });
const noGrant = () => new RemoteError("forbidden", "no grant for the resource");
const aHidden: Partial<Client> = {
  async getNode(id) {
    if (id === "a") throw noGrant();
    return nodeOf(id, { name: `${id} moved`, revision: 2 });
  },
};

test("a node that may not be read does not keep the journal from being followed", async () => {
  const entries = ["a", "b"].map((id, index) => entryOf(nodeOf(id, { revision: 2 }), 5 + index));
  const { context, metadata, names } = await begin({ ...aHidden, readJournal: async () => page(entries) });
  await followOnce(context, SIGNAL);
  expect(names()).toEqual(["a", "b moved"]);
  expect(metadata.settings.getNumber("cursor")).toBe(9);
  expect(metadata.rereads.due(rowTime(0), 9).map(({ nodeId }) => nodeId)).toEqual(["a"]);
});

test("a deletion is heard of, though the change before it cannot be read", async () => {
  const entries = [
    entryOf(nodeOf("a", { revision: 2 }), 5),
    entryOf(nodeOf("b", { revision: 2 }), 6),
    entryOf(nodeOf("a", { revision: 3 }), 7, "deleted"),
  ];
  const { context, names } = await begin({ ...aHidden, readJournal: async () => page(entries) });
  await followOnce(context, SIGNAL);
  expect(names()).toEqual(["b moved"]);
});

test("a token without the scope reads nothing: the journal waits", async () => {
  const { context, metadata } = await begin({
    readJournal: async () => page([entryOf(nodeOf("a", { revision: 2 }), 5)]),
    getNode: async () => {
      throw new RemoteError("forbidden", "the token lacks node.file.read", { scope: "node.file.read" });
    },
  });
  await expect(followOnce(context, SIGNAL)).rejects.toThrow("lacks node.file.read");
  expect(metadata.settings.getNumber("cursor")).toBe(0);
});

describe("what waits for its name", () => {
  const x = nodeOf("x", { parentId: "a", path: "/a/x" });

  /** The folder a has an x made here, of which the gateway does not know yet, and the gateway's x waits for its name. */
  async function withWaiting(client: Partial<Client>) {
    const world = await begin(client);
    const { context, metadata } = world;
    const folder = metadata.entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0);
    metadata.inodes.update(folder, { listed: 1 });
    const { id } = metadata.inodes.create({ ...contentOfNode(x, "0"), kind: "folder", atime: "0" });
    context.names.add(folder, "x", id, "folder");
    context.observer.node(x);
    expect(metadata.arrivals.count()).toBe(1);
    return world;
  }

  test("deleted, it waits no longer", async () => {
    const { context, metadata } = await withWaiting({
      readJournal: async () => page([entryOf({ ...x, revision: 2 }, 5, "deleted")]),
      getNode: async () => {
        throw new RemoteError("notFound", "no such node");
      },
    });
    await followOnce(context, SIGNAL);
    expect(metadata.arrivals.count()).toBe(0);
  });

  test("moved to where nobody here looks, it waits no longer", async () => {
    const moved = { ...x, parentId: "elsewhere", path: "/elsewhere/x", revision: 2 };
    const { context, metadata } = await withWaiting({
      readJournal: async () => page([entryOf(moved, 5, "moved")]),
      getNode: async () => moved,
    });
    await followOnce(context, SIGNAL);
    expect(metadata.arrivals.count()).toBe(0);
  });

  for (const kind of ["moved", "deleted"]) {
    test(`let wait by an old list, and ${kind} elsewhere since, it waits no longer`, async () => {
      const moved = { ...x, parentId: "elsewhere", path: "/elsewhere/x", revision: 2 };
      const entries = [entryOf(moved, 7, "moved"), entryOf({ ...moved, revision: 3 }, 8, "deleted")];
      const { context, metadata } = await begin({
        listFolder: async () => ({ items: [x], totalCount: 1, pageNo: 1, pageSize: 1000, asOf: 5, next: null }),
        readJournal: async () => page(kind === "moved" ? entries.slice(0, 1) : entries),
        async getNode() {
          if (kind === "moved") return moved;
          throw new RemoteError("notFound", "no such node");
        },
      });
      metadata.settings.set("cursor", "9");
      const folder = metadata.entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0);
      const { id } = metadata.inodes.create({ ...contentOfNode(x, "0"), kind: "folder", atime: "0" });
      context.names.add(folder, "x", id, "folder");
      await context.folders.complete(folder, SIGNAL);
      expect(metadata.inodes.get(folder)?.listed).toBe(9);
      expect(metadata.arrivals.count()).toBe(0);
    });
  }
});

test("what may not be read and nobody here has a row of is not asked for for ever", async () => {
  const { context, metadata, clock } = await begin({});
  for (const id of ["a", "unknown"]) metadata.rereads.add(id);
  for (let minutes = 0; minutes <= 10; minutes += 1) {
    for (const reread of metadata.rereads.due(rowTime(clock.wallClock()), 9)) context.nodeReader.notVisible(reread);
    await clock.advance(60_000);
  }
  expect(metadata.rereads.due(rowTime(Number.MAX_SAFE_INTEGER), 9).map(({ nodeId }) => nodeId)).toEqual(["a"]);
});

test("a folder that may not be listed does not keep the others, nor what comes after them, from being read", async () => {
  const { context, metadata, clock } = await begin({
    features: PLAIN,
    async listFolder(id) {
      if (id === "a") throw noGrant();
      const items = [nodeOf(`in ${id}`, { parentId: id })];
      return { items, totalCount: 1, pageNo: 1, pageSize: 1000, asOf: 7, next: null };
    },
  });
  const folders = ["a", "b"].map((name) => metadata.entries.find(ROOT_INODE, name)?.inode ?? inodeId(0));
  for (const folder of folders) metadata.inodes.update(folder, { listed: 1 });
  // The root has its turn too.
  for (let round = 0; round < 2; round += 1) await pollFolders(context, SIGNAL);
  expect(metadata.entries.find(folders[1] ?? inodeId(0), "in b")).toBeDefined();
  expect(metadata.settings.getNumber("cursor")).toBe(clock.wallClock() - SETTLE_MS);
});

test("known not to answer, no further folder is asked for", async () => {
  let calls = 0;
  const { context, metadata } = await begin({
    features: PLAIN,
    async listFolder() {
      calls += 1;
      throw new RemoteError("offline", "no connection");
    },
  });
  for (const name of ["a", "b"]) {
    metadata.inodes.update(metadata.entries.find(ROOT_INODE, name)?.inode ?? inodeId(0), { listed: 1 });
  }
  await expect(pollFolders(context, SIGNAL)).rejects.toThrow("no connection");
  expect(calls).toBe(1);
});

test("a deletion is remembered as long as a listing is under way, however far journal and index are", async () => {
  const { context, metadata } = await begin({ readJournal: async () => page([entryOf(nodeOf("b"), 9)]) });
  metadata.tombstones.add({ nodeId: "gone", revision: 3, position: 5 });
  metadata.settings.set("indexed", "9");
  await followOnce(withParts(context, { listings: { ...context.listings, size: 1 } }), SIGNAL);
  expect(metadata.tombstones.get("gone")).toBeDefined();
  metadata.settings.set("cursor", "8");
  await followOnce(context, SIGNAL);
  expect(metadata.tombstones.get("gone")).toBeUndefined();
});

test.each([
  ["not found", new RemoteError("notFound", "no such node")],
  ["not visible at first, and then not found", new RemoteError("forbidden", "you may not read this node")],
])("deleted and restored while its id is %s: the deletion that is known does not end the asking", async (_, first) => {
  const restored = nodeOf("a", { revision: 3 });
  let answer: RemoteError | undefined = first;
  const { context, metadata, clock, names } = await begin({
    readJournal: async () =>
      page([entryOf(nodeOf("a", { revision: 2 }), 5, "deleted"), entryOf(restored, 6, "restored")]),
    async getNode() {
      if (answer !== undefined) throw answer;
      return restored;
    },
  });
  metadata.inodes.update(ROOT_INODE, { listed: 1 });
  const ask = async () => {
    for (const reread of metadata.rereads.due(rowTime(clock.wallClock()), 9))
      await context.nodeReader.refresh(reread, SIGNAL);
  };
  await followOnce(context, SIGNAL);
  expect(names()).toEqual(["b"]);
  answer = new RemoteError("notFound", "no such node");
  await ask();
  answer = undefined;
  await clock.advance(10_000);
  await ask();
  expect(names()).toEqual(["a", "b"]);
});

/** An old list of a, which is not listed yet, and the journal tells of an x in it. */
async function withNewsOfX() {
  const x = nodeOf("x", { parentId: "a", path: "/a/x" });
  const world = await begin({
    listFolder: async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 1000, asOf: 3, next: null }),
    readJournal: async () => page([entryOf(x, 5, "created")]),
    getNode: async () => x,
  });
  world.metadata.settings.set("cursor", "3");
  const folder = world.metadata.entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0);
  return { ...world, folder, isShown: () => world.metadata.entries.find(folder, "x") !== undefined };
}

test("a folder is listed while what the journal told waits for a commit: nothing that was passed over is missing", async () => {
  const world = await withNewsOfX();
  const { metadata, clock, folder } = world;
  const { context } = world;
  for (let id = 1; id <= MANY; id += 1) context.sending.set(attemptId(id), () => {});
  // A commit was made just now: the next one that is shared has its time.
  const first = context.groupCommit(() => {});
  await clock.advance(0);
  await first;
  const both = [followOnce(context, SIGNAL), context.folders.complete(folder, SIGNAL)];
  await clock.advance(1_000);
  await Promise.all(both);
  expect([metadata.settings.getNumber("cursor"), world.isShown()]).toEqual([9, true]);
});

test("a folder is listed to its end at any moment of what the journal tells being applied: nothing is missing", async () => {
  const missing: number[] = [];
  for (let turns = 0; turns < 20; turns += 1) {
    const { context, clock, folder, isShown } = await withNewsOfX();
    const listed = context.folders.complete(folder, SIGNAL);
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    const heard = followOnce(context, SIGNAL);
    await clock.advance(1_000);
    await Promise.all([listed, heard]);
    if (!isShown()) missing.push(turns);
  }
  expect(missing).toEqual([]);
});

test("passed over, deleted and restored while its id is not found: the list of its folder goes on asking", async () => {
  const x = nodeOf("x", { parentId: "a", path: "/a/x", revision: 3 });
  let isFound = false;
  const { context, metadata, clock } = await begin({
    listFolder: async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 1000, asOf: 3, next: null }),
    readJournal: async () => page([entryOf({ ...x, revision: 2 }, 5, "deleted"), entryOf(x, 6, "restored")]),
    async getNode() {
      if (!isFound) throw new RemoteError("notFound", "no such node");
      return x;
    },
  });
  metadata.settings.set("cursor", "9");
  const folder = metadata.entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0);
  const ask = async () => {
    for (const reread of metadata.rereads.due(rowTime(clock.wallClock()), 9))
      await context.nodeReader.refresh(reread, SIGNAL);
  };
  await context.folders.complete(folder, SIGNAL);
  await ask();
  isFound = true;
  await clock.advance(10_000);
  await ask();
  expect(metadata.entries.find(folder, "x")).toBeDefined();
});
