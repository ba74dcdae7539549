/** The names of the whole workspace are read in the background, so that every folder can be listed offline. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { createBytesWorld, pattern } from "../support/bytes-world.ts";
import { begin, entryOf, expectWhole, filesIn, folderOf, NAMES, smallTree } from "./tree-world.ts";

/** So many folders in the root (d000, d001, …), each with what is in it. */
function wideTree(count: number, inside: (name: string) => readonly Node[]) {
  const names = Array.from({ length: count }, (_, at) => `d${String(at).padStart(3, "0")}`);
  const tree = new Map<string, readonly Node[]>(names.map((name) => [name, inside(name)]));
  tree.set(
    "root",
    names.map((name) => folderOf(name, "root")),
  );
  return { tree, names };
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

test("without a number of names, nothing is read that no program asked for", async () => {
  const it = await begin(undefined);
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

test("a stream has all of it: one request, whatever the folders", async () => {
  const tree = smallTree();
  tree.set("b3", []);
  tree.set("a", [...(tree.get("a") ?? []), ...filesIn("a", 1800)]);
  const it = await begin(100_000, tree, {});
  it.start();
  await it.pass(2000);
  expect([it.known(), it.streamed, it.asked, it.journalReads()]).toEqual(["all", ["root"], [], 0]);
  expect(it.context.metadata.entries.count()).toBe(NAMES + 1 - 4 + 1800);
  expectWhole(it, tree);
  await it.pass(60_000);
  expect([it.streamed, it.ended(), it.context.treeListings.count]).toEqual([["root"], 1, 0]);
});

test("cut before any part, it goes on with what is missing; no folder is known by halves", async () => {
  for (let cut = 1; cut <= 18; cut += 1) {
    const tree = smallTree();
    let parts = 0;
    const onPart = () => {
      parts += 1;
      if (parts === cut) throw new RemoteError("offline", "the connection broke");
    };
    // Two parts a folder: a cut within one too.
    const it = await begin(1000, tree, { size: 2, onPart });
    it.start();
    for (let round = 0; round < 20; round += 1) {
      await it.pass(20);
      expectWhole(it, tree);
    }
    it.context.network.isThere();
    await it.pass(10_000);
    expect([cut, it.known()]).toEqual([cut, "all"]);
    expectWhole(it, tree);
    expect(it.context.treeListings.count).toBe(0);
    it.prefetch.stop();
  }
});

test("a stream that breaks at the same folder each time: its folders are listed by themselves, and all is known", async () => {
  for (const broken of ["root", "a", "a1", "a2", "b3"]) {
    const tree = smallTree();
    const onPart = (folder: string) => {
      if (folder === broken) throw new RemoteError("server", "this folder cannot be streamed");
    };
    const it = await begin(1000, tree, { onPart });
    it.start();
    await it.pass(25_000);
    expect([broken, it.known()]).toEqual([broken, "all"]);
    expect(it.asked).toContain(broken);
    expectWhole(it, tree);
    it.prefetch.stop();
  }
});

test("a folder that can neither be streamed nor listed does not keep the others from being read", async () => {
  const tree = smallTree();
  const onPart = (folder: string) => {
    if (folder === "a1") throw new RemoteError("server", "this folder cannot be streamed");
    it.failing.add("a1");
  };
  const it = await begin(1000, tree, { onPart });
  it.failing.add("a1");
  it.start();
  await it.pass(25_000);
  const unknown = [...tree.keys()].filter((id) => {
    const folder = it.context.nodeRows.folderOfNode(id);
    return folder === undefined || it.context.metadata.inodes.get(folder)?.listed == null;
  });
  expect(unknown).toEqual(["a1"]);
});

test("what the journal told since the snapshot is asked for once, and every folder is as of now", async () => {
  const it = await begin(1000, smallTree(), {});
  it.journal.push(entryOf({}), entryOf({ position: 7, nodeId: "elsewhere", parentId: "nowhere" }));
  it.context.metadata.settings.set("cursor", "7");
  it.start();
  await it.pass(2000);
  expect([it.known(), it.streamed, it.journalReads()]).toEqual(["all", ["root"], 1]);
  const a1 = it.context.nodeRows.folderOfNode("a1") ?? inodeId(0);
  expect(it.context.metadata.entries.list(a1, 0, 10).map(({ name }) => name)).toEqual(["f1", "f2", "f3"]);
  expect(it.context.metadata.inodes.get(a1)?.listed).toBe(7);
});

test("while the workspace changes all the time, what one stream has told is not told again by the next", async () => {
  const { tree } = wideTree(30, (name) => filesIn(name, 1));
  let parts = 0;
  const onPart = () => {
    parts += 1;
    // More changes between two folders than a stream is read on after.
    for (let at = 0; at < 600; at += 1) {
      it.journal.push(entryOf({ position: 6 + it.journal.length, nodeId: `n${at}`, parentId: "no" }));
    }
    it.context.metadata.settings.set("cursor", String(5 + it.journal.length));
  };
  const it = await begin(1000, tree, { onPart });
  it.start();
  await it.pass(60_000);
  expect(it.known()).toBe("all");
  expect(it.streamed.length).toBeGreaterThan(20);
  expect(parts).toBeLessThan(2 * tree.size + it.streamed.length);
});

test("what was read before the gateway's history became another one is not taken in", async () => {
  const tree = smallTree();
  const onPart = (folder: string) => {
    if (folder !== "a1" || tree.get("a1")?.length === 1) return;
    // As after a rollback: the parts that were read so far are of what is no more.
    tree.set("a1", filesIn("a1", 1));
    it.context.treeListings.resets += 1;
  };
  const it = await begin(1000, tree, { onPart });
  it.start();
  await it.pass(60_000);
  expect(it.known()).toBe("all");
  expect(it.streamed.length).toBeGreaterThan(1);
  expectWhole(it, tree);
  expect(it.context.treeListings.count).toBe(0);
});

test("after many changes a new snapshot is taken", async () => {
  const it = await begin(1000, smallTree(), {});
  for (let at = 0; at < 600; at += 1) it.journal.push(entryOf({ position: 6 + at, nodeId: `n${at}`, parentId: "no" }));
  it.context.metadata.settings.set("cursor", "605");
  it.start();
  await it.pass(2000);
  expect(it.known()).toBe("all");
  expect(it.streamed.length).toBeGreaterThan(1);
  expect(it.journalReads()).toBe(it.streamed.length);
});

test("what programs looked into last comes between two parts of a stream", async () => {
  const { tree } = wideTree(300, (name) => [folderOf(`${name}-in`, name)]);
  const it = await begin(10_000, tree, {});
  it.start();
  await it.pass(100);
  const last = it.inodeOf(ROOT_INODE, "d299");
  const list = it.context.folders.complete(last, new AbortController().signal);
  await it.pass(30);
  await list;
  it.context.folders.visit(last);
  await it.pass(200);
  expect(it.asked).toEqual(["d299", "d299-in"]);
  await it.pass(10_000);
  expect([it.known(), it.streamed, it.asked.length]).toEqual(["all", ["root"], 2]);
});

test("content that programs read comes first: names are read more slowly meanwhile, and not left for good", async () => {
  const { tree, names: many } = wideTree(400, () => []);
  const namesAfter = async (milliseconds: number, isReading: boolean) => {
    const it = await begin(10_000, tree, {});
    if (isReading) it.context.fileState.downloadBegins();
    it.start();
    await it.pass(milliseconds);
    const known = many.filter((name) => {
      const folder = it.context.nodeRows.folderOfNode(name);
      return folder !== undefined && it.context.metadata.inodes.get(folder)?.listed != null;
    });
    return { it, known: known.length };
  };
  const alone = await namesAfter(1000, false);
  const reading = await namesAfter(1000, true);
  expect(alone.known).toBe(many.length);
  expect(reading.known).toBeGreaterThan(many.length / 20);
  expect(reading.known).toBeLessThan(many.length / 2);
  // Reading small files one after another, with moments between them in which none is downloaded.
  const { context } = reading.it;
  for (let passed = 0; passed < 1500; passed += 50) {
    context.fileState.downloadEnded(context.runtime.elapsed());
    await reading.it.pass(50);
    context.fileState.downloadBegins();
  }
  context.fileState.downloadEnded(context.runtime.elapsed());
  expect(reading.it.known()).toBe("ahead");
  await reading.it.pass(2000);
  expect(reading.it.known()).toBe("all");
});

test("a download counts as reading until it has ended, a refused one too", async () => {
  const world = await createBytesWorld();
  const { fileState, runtime } = world.context;
  const handle = await world.open(world.addRemote(pattern(1000)));
  world.gateway.hold();
  world.gateway.failures = ["forbidden"];
  const reading = world.read(handle, 0, 10).catch((error: { readonly code: string }) => error.code);
  await world.clock.settle();
  expect([fileState.downloads, fileState.downloadedAt]).toEqual([1, undefined]);
  world.gateway.release();
  expect(await reading).toBe("EACCES");
  await world.clock.settle();
  expect([fileState.downloads, fileState.downloadedAt]).toEqual([0, runtime.elapsed()]);
});

test("what programs look into all the time does not lead a stream over the number of names", async () => {
  const { tree } = wideTree(300, (name) => filesIn(name, 20));
  const it = await begin(2000, tree, {});
  it.start();
  for (let time = 0; time < 10_000; time += 10) {
    it.context.folders.visit(ROOT_INODE);
    await it.pass(10);
  }
  expect(it.asked.length).toBeGreaterThan(0);
  expect(it.context.metadata.entries.count()).toBeLessThan(2100);
});

test("a stream ends at the number of names, in the middle of a large folder too", async () => {
  const tree = smallTree();
  tree.set("a", filesIn("a", 5000));
  const it = await begin(2000, tree, {});
  it.start();
  await it.pass(30_000);
  expect([it.known(), it.streamed, it.ended()]).toEqual(["visited", ["root"], 1]);
  const count = it.context.metadata.entries.count();
  expect([count >= 2000, count < 3100]).toEqual([true, true]);
  const list = it.context.folders.complete(it.inodeOf(ROOT_INODE, "a"), new AbortController().signal);
  await it.pass(1000);
  await list;
  expect(it.context.metadata.entries.count()).toBeGreaterThan(5000);
});

test("a program that looks into a folder joins its part of the stream", async () => {
  const tree = smallTree();
  tree.set("a", filesIn("a", 5000));
  const it = await begin(100_000, tree, { size: 100 });
  it.start();
  await it.pass(30);
  expect(it.context.metadata.entries.count()).toBeLessThan(4000);
  const list = it.context.folders.complete(it.inodeOf(ROOT_INODE, "a"), new AbortController().signal);
  await it.pass(2000);
  await list;
  expect([it.asked, it.streamed]).toEqual([[], ["root"]]);
});

test("a stream is a list under way: deletions are remembered until it has ended", async () => {
  const counts: number[] = [];
  const onPart = () => {
    it.context.shown.forgetDeletions();
    counts.push(it.context.metadata.tombstones.get("a3/9") === undefined ? 0 : 1);
  };
  const it = await begin(1000, smallTree(), { onPart });
  const { metadata } = it.context;
  metadata.tombstones.add({ nodeId: "a3/9", revision: 9, position: 3 });
  metadata.settings.set("cursor", "5");
  metadata.settings.set("indexed", "5");
  it.start();
  await it.pass(2000);
  expect(counts.length).toBeGreaterThan(5);
  expect(new Set(counts)).toEqual(new Set([1]));
  it.context.shown.forgetDeletions();
  expect(metadata.tombstones.get("a3/9")).toBeUndefined();
});

test("one refused stream may be that of its folder; after two the gateway has none", async () => {
  const it = await begin(1000);
  it.start();
  await it.pass(1000);
  expect([it.known(), it.refused()]).toEqual(["all", 2]);
});
