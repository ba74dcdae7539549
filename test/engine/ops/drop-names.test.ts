/** More names are known than the mount keeps: those that were not used for longest are dropped, and come back by a list. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { plus, rowTime } from "../../../src/lib/clocks.ts";
import { NO_RANGES } from "../../../src/lib/ranges.ts";
import { type InodeId, type KernelNodeId, kernelNodeId, snapshotId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born, type NodeRow } from "../../../src/metadata/nodes.ts";
import { PLAIN, without } from "../../support/features.ts";
import { CALLER } from "../support/bytes-world.ts";
import { begin, entryOf, expectWhole, filesIn, folderOf, NAMES, smallTree, type TreeWorld } from "./tree-world.ts";

/** After so long nothing that was used before counts as used a moment ago, and the names were looked at. */
const LONG_MS = 8 * 60_000;

/** A kernel that has what it was told to have. */
function createKernel() {
  const has = new Set<KernelNodeId>();
  let onAsked: (kernelNodeIds: readonly KernelNodeId[]) => unknown = () => {};
  return {
    has,
    /** `next` runs between a question and its answer. */
    onAsked(next: typeof onAsked) {
      onAsked = next;
    },
    cache: {
      async unknownToKernel(kernelNodeIds: readonly KernelNodeId[]) {
        const lacking = new Set(kernelNodeIds.filter((kernelNodeId) => !has.has(kernelNodeId)));
        await onAsked(kernelNodeIds);
        return lacking;
      },
    },
  };
}

/** All folders were listed, as after a long walk, and nothing was read in the background. */
async function beginKnown(
  namesAhead: number | undefined,
  { tree = smallTree(), kernel = createKernel(), onStep = (_: string) => {} } = {},
) {
  const it = await begin(namesAhead, tree, undefined, { cache: kernel.cache, onStep });
  const { context } = it;
  const folder = (id: string) => context.nodeRows.folderOfNode(id) ?? missing(id);
  const list = async (id: string) => {
    const listed = context.folders.complete(folder(id), new AbortController().signal);
    await it.pass(200);
    await listed;
  };
  context.metadata.settings.set("cursor", "5");
  context.metadata.settings.set("indexed", "5");
  for (const id of tree.keys()) await list(id);
  const { metadata } = context;
  const kernelNodeIdOf = (id: InodeId) => metadata.inodes.get(id)?.kernelNodeId ?? kernelNodeId(0);
  return {
    ...it,
    kernel,
    tree,
    folder,
    list,
    kernelNodeIdOf,
    fileSystem: createFileSystem(context),
    /** Node ids of the folders of which all names are known. */
    listed: () => [...tree.keys()].filter((id) => isListed(it, id)),
    names: () => metadata.entries.count() - 1,
    async drop() {
      void it.dropping.run();
      await it.world.clock.advance(LONG_MS);
    },
    row: (id: string) => metadata.nodes.ofNodeId(id) ?? missing(id),
    inode: (id: string) => context.nodeRows.inodeOf(metadata.nodes.ofNodeId(id) ?? missing(id)) ?? missing(id),
  };
}
type Known = Awaited<ReturnType<typeof beginKnown>>;

function missing(what: string): never {
  throw new Error(`no ${what}`);
}

function isListed({ context }: TreeWorld, id: string): boolean {
  const folder = context.nodeRows.folderOfNode(id);
  return folder !== undefined && context.metadata.inodes.get(folder)?.listed != null;
}

/** No row is left of a name that went, and nothing is to be sent. */
function expectNoRemains({ context }: Pick<TreeWorld, "context">, names: number): void {
  const { metadata } = context;
  const inodes = new Set<InodeId>();
  let nodes = 0;
  const walk = (folder: InodeId): void => {
    for (const entry of metadata.entries.list(folder, 15, 10_000)) {
      inodes.add(entry.inode);
      if (metadata.nodes.ofEntry(entry.id) !== undefined) nodes += 1;
      if (metadata.inodes.get(entry.inode)?.kind === "folder") walk(entry.inode);
    }
  };
  walk(ROOT_INODE);
  expect([inodes.size, nodes, metadata.entries.count() - 1]).toEqual([names, names, names]);
  const kernelNodeIds = metadata.inodes.kernelNodeIdsAfter(0, 10_000);
  expect(kernelNodeIds.length).toBe(names + 1);
  expect(metadata.inodes.orphans(0, metadata.inodes.newestOrphan(), 10)).toEqual([]);
  expect(metadata.nodes.counts()).toMatchObject({ dirty: 0, parked: 0 });
  expect(metadata.nodes.nextDue()).toBeUndefined();
}

test("as many names go as are too many, those first that were not used for longest", async () => {
  const it = await beginKnown(20);
  for (const id of ["a1", "b2"]) it.context.folderUse.note(it.folder(id));
  await it.world.clock.advance(LONG_MS);
  for (const id of ["a", "b", "b3", "b1"]) it.context.folderUse.note(it.folder(id));
  it.context.metadata.transaction(() => it.context.metadata.settings.set("written", "1"));
  expect(it.names()).toBe(NAMES);
  await it.drop();
  // Never used: a2 and a3, with four names each. Of those that were used before the others: all of b2, and one of a1.
  expect(it.names()).toBe(20 - 1);
  expect(it.listed()).toEqual(["root", "a", "b", "b1", "b3"]);
  expect(it.context.metadata.nodes.below("a1").map(({ nodeId }) => nodeId)).toEqual(["a1/1", "a1/2", "a1/3"]);
  expectWhole(it, it.tree);
  expectNoRemains(it, 19);
});

test("of all that may go the last go with their folders; the names of the root stay", async () => {
  const it = await beginKnown(1);
  await it.drop();
  await it.world.clock.advance(60_000);
  expect([it.names(), it.listed()]).toEqual([2, ["root"]]);
  expectNoRemains(it, 2);
  for (const id of it.tree.keys()) await it.list(id);
  expect([it.names(), it.listed()]).toEqual([NAMES, [...it.tree.keys()]]);
  expectWhole(it, it.tree);
});

test("a dropped name is asked for at the gateway, and found; while that is away, it is as in a folder never listed", async () => {
  const it = await beginKnown(10);
  for (const id of ["a", "b"]) it.context.folderUse.note(it.folder(id));
  await it.drop();
  const [dropped = "", other = ""] = ["a1", "a2", "a3", "b1", "b2", "b3"].filter(
    (id) => it.context.metadata.nodes.below(id).length === 0,
  );
  it.context.fresh.caughtUp(it.context.fresh.asking());
  const found = it.fileSystem.lookup(CALLER, it.kernelNodeIdOf(it.folder(dropped)), "f2");
  await it.pass(200);
  expect(await found).toMatchObject({ kernelNodeId: it.inode(`${dropped}/2`).kernelNodeId });
  expect(it.asked.at(-1)).toBe(dropped);

  it.failing.add(other);
  it.context.network.failed(new RemoteError("offline", "no way"));
  const away = it.fileSystem.lookup(CALLER, it.kernelNodeIdOf(it.folder(other)), "f2").catch((error: unknown) => error);
  await it.pass(2000);
  expect(await away).toMatchObject({ code: "EIO" });
});

/** Each keeps the name `a1/0`, and lets it go when what it returns is called. */
const KEPT: Readonly<Record<string, (it: Known, row: NodeRow, inode: Inode) => () => void>> = {
  "it was changed here": ({ context: { metadata, runtime } }, { id }) => {
    metadata.nodes.update(id, { dirtySince: runtime.now() });
    return () => metadata.nodes.update(id, { dirtySince: null });
  },
  "the plan is to look at it": ({ context: { metadata, runtime } }, { id }) => {
    metadata.nodes.update(id, { due: plus(runtime.now(), 1e9) });
    return () => metadata.nodes.update(id, { due: null });
  },
  "news of it is not adopted yet": ({ context: { metadata } }, { id }) => {
    metadata.nodes.update(id, { seen: { deleted: true, revision: 9 } });
    return () => metadata.nodes.update(id, { seen: null });
  },
  "the gateway refused it": ({ context: { metadata } }, { id }) => {
    metadata.nodes.update(id, { parked: "no" });
    return () => metadata.nodes.update(id, { parked: null });
  },
  "lists do not show our write yet": ({ context: { metadata } }, { id, base }) => {
    if (base === null) throw new Error("no base");
    metadata.nodes.update(id, { base: { ...base, position: 6 } });
    return () => metadata.settings.set("cursor", "6") ?? metadata.settings.set("indexed", "6");
  },
  "where our write stands is not known": ({ context: { metadata } }, { id, base }) => {
    if (base === null) throw new Error("no base");
    metadata.nodes.update(id, { base: { ...base, position: { unconfirmedSince: rowTime(1) } } });
    return () => metadata.nodes.update(id, { base });
  },
  "a request that was given up may arrive": ({ context: { metadata } }, { id }) => {
    const request = { do: "delete", nodeId: "a1/0", ifRevision: 1 } as const;
    const times = { nextAt: rowTime(1), createdAt: rowTime(1) };
    const attempt = metadata.attempts.create({ node: id, key: "k", request, snapshot: null, ...times });
    metadata.attempts.abandon(attempt.id, rowTime(1));
    return () => metadata.attempts.remove(attempt.id);
  },
  "it is to be read again": ({ context: { metadata } }) => {
    metadata.rereads.add("a1/0");
    return () => metadata.rereads.due(rowTime(1e15), 10).forEach(metadata.rereads.done);
  },
  "it waits for its name": ({ context: { metadata } }, { entry }) => {
    const { id, parent, name } = (entry !== null && metadata.entries.get(entry)) || missing("entry");
    metadata.entries.move(id, parent, `/${id}`);
    return () => metadata.entries.move(id, parent, name);
  },
  "it is not where the gateway has it": ({ context: { metadata } }, { entry }) => {
    const { id, parent, name } = (entry !== null && metadata.entries.get(entry)) || missing("entry");
    metadata.entries.move(id, parent, "else");
    return () => metadata.entries.move(id, parent, name);
  },
  "another node waits for its place": ({ context: { metadata } }) => {
    const [node] = filesIn("a1", 1) as [Node];
    const { id } = metadata.nodes.create({ ...born(null, { ...node, id: "waits" }), due: rowTime(1e15) });
    return () => metadata.nodes.remove(id);
  },
  "its content may have changed": ({ context: { metadata } }, _, { id }) => {
    metadata.inodes.update(id, { content: "open" });
    return () => metadata.inodes.update(id, { content: "clean" });
  },
  "its bytes are on this disk": ({ context: { metadata } }, _, { kernelNodeId }) => {
    const origin = { originNode: "a1/0", originVersion: "1" };
    metadata.cacheFiles.create({ kernelNodeId, ...origin, size: 5, bytes: 5, missing: NO_RANGES, usedAt: rowTime(1) });
    return () => metadata.cacheFiles.update(kernelNodeId, { bytes: 0 });
  },
  "it is a name of a hard linked file": ({ context: { metadata } }, _, { id }) => {
    metadata.inodes.update(id, { linkGroup: "g" });
    return () => metadata.inodes.update(id, { linkGroup: null });
  },
  "a program has its earlier bytes": ({ context: { metadata } }, _, { id }) => {
    const before = metadata.inodes.get(id)?.kernelNodeId ?? kernelNodeId(0);
    metadata.inodes.replaceKernelNodeId(id, {});
    return () => metadata.inodes.removeKernelNodeId(before);
  },
  "another file grew from it": ({ context: { metadata } }, _, inode) => {
    const { id } = metadata.inodes.create({ ...inode, originNode: "a1/0", content: "dirty" });
    return () => metadata.inodes.remove(id);
  },
  "a snapshot of it is there": ({ context: { metadata } }, _, { id, changes }) => {
    const about = { hash: "h", mtime: "0", synced: 0, boot: "" } as const;
    const made = metadata.snapshots.create({ ...about, inode: id, changes, kernelNodeId: null, size: 0 });
    return () => metadata.snapshots.remove(made.id ?? snapshotId(0));
  },
  "the kernel has it": ({ kernel }, _, { kernelNodeId }) => {
    kernel.has.add(kernelNodeId);
    return () => kernel.has.delete(kernelNodeId);
  },
};

/** Each keeps all names of the folder `a1`. */
const FOLDER_KEPT: Readonly<Record<string, (it: Known, row: NodeRow, folder: Inode) => () => void>> = {
  "the kernel has it": ({ kernel }, _, { kernelNodeId }) => {
    kernel.has.add(kernelNodeId);
    return () => kernel.has.delete(kernelNodeId);
  },
  "it was moved here": ({ context: { metadata, runtime } }, { id }) => {
    metadata.nodes.update(id, { dirtySince: runtime.now() });
    return () => metadata.nodes.update(id, { dirtySince: null });
  },
  "a request wants a place in it": ({ context: { metadata }, row }) => {
    const { id } = row("b1/0");
    const request = { do: "folder", parent: "a1", name: "new" } as never;
    const times = { nextAt: rowTime(1), createdAt: rowTime(1) };
    metadata.attempts.create({ node: id, key: "k", request, snapshot: null, ...times });
    return () => metadata.attempts.removeAllOf(id);
  },
  "it is to be listed again": ({ context: { metadata }, folder }) => {
    metadata.relists.add(folder("a1"));
    return () => {
      for (let next = metadata.relists.next(rowTime(1e15)); next !== undefined; ) {
        metadata.relists.done(next);
        next = metadata.relists.next(rowTime(1e15));
      }
    };
  },
  "a node waits for a name in it": ({ context: { metadata } }) => {
    const [node] = filesIn("a1", 1) as [Node];
    metadata.arrivals.add({ ...node, id: "waits" });
    return () => metadata.arrivals.remove("waits");
  },
  "a program has it open": ({ context: { handles }, folder, kernelNodeIdOf }) => {
    const id = handles.give(CALLER, kernelNodeIdOf(folder("a1")), {
      kind: "folder",
      inode: folder("a1"),
      directoryStream: undefined,
    });
    return () => handles.delete(id);
  },
};

for (const [why, keep] of Object.entries(KEPT)) {
  test(`a name stays while ${why}`, async () => {
    const it = await beginKnown(1);
    const letGo = keep(it, it.row("a1/0"), it.inode("a1/0"));
    await it.drop();
    const left = () => it.context.metadata.nodes.below("a1").map(({ nodeId }) => nodeId);
    expect([left().includes("a1/0"), left().includes("a1/1"), it.listed()]).toEqual([true, false, ["root"]]);
    letGo();
    await it.world.clock.advance(20 * 60_000);
    expect([left(), it.names()]).toEqual([[], 2]);
  });
}

for (const [why, keep] of Object.entries(FOLDER_KEPT)) {
  test(`all names of a folder stay while ${why}`, async () => {
    const it = await beginKnown(1);
    const letGo = keep(it, it.row("a1"), it.inode("a1"));
    await it.drop();
    expect(it.listed()).toEqual(["root", "a1"]);
    expectWhole(it, it.tree);
    letGo();
    await it.world.clock.advance(20 * 60_000);
    expect([it.listed(), it.names()]).toEqual([["root"], 2]);
  });
}

/** Each happens after the kernel said that it does not have `a1`, and before the names go. */
const MEANWHILE: Readonly<Record<string, (it: Known) => void>> = {
  "a program looks into the folder": ({ fileSystem, kernelNodeIdOf, folder }) =>
    void fileSystem.lookup(CALLER, kernelNodeIdOf(folder("a1")), "f0"),
  "the folder is being listed": ({ context, folder }) =>
    void context.folders.prefetch(folder("a1"), () => true).catch(() => {}),
  "the gateway goes away": ({ context }) => context.network.failed(new RemoteError("offline", "no way")),
  "the mount ends": ({ dropping }) => dropping.stop(),
  "a program changes the folder": ({ context: { metadata, runtime } }) =>
    void metadata.nodes.update(metadata.nodes.ofNodeId("a1")?.id ?? missing("a1"), { dirtySince: runtime.now() }),
};

for (const [what, happen] of Object.entries(MEANWHILE)) {
  test(`while the kernel is asked, ${what}: nothing goes`, async () => {
    // The first question is about the folder, the second about its names too.
    for (const ask of [1, 2]) await expectStay(ask, happen);
  });
}

test("between two questions the kernel comes to have the folder: nothing goes", () =>
  expectStay(1, ({ kernel, kernelNodeIdOf, folder }) => void kernel.has.add(kernelNodeIdOf(folder("a1")))));

async function expectStay(ask: number, happen: (it: Known) => void): Promise<void> {
  const kernel = createKernel();
  const it = await beginKnown(1, { kernel });
  const a1 = it.kernelNodeIdOf(it.folder("a1"));
  const before = [0, 1, 2, 3].map((at) => it.inode(`a1/${at}`).id);
  let times = 0;
  kernel.onAsked((kernelNodeIds) => {
    if (!kernelNodeIds.includes(a1)) return;
    times += 1;
    if (times === ask) happen(it);
  });
  void it.dropping.run();
  for (let step = 0; step < 200 && times < ask; step += 1) await it.world.clock.advance(1_000);
  await it.world.clock.advance(100);
  expect(times).toBeGreaterThanOrEqual(ask);
  expect([0, 1, 2, 3].map((at) => it.inode(`a1/${at}`).id)).toEqual(before);
  expect(it.listed()).toContain("a1");
}

test("a folder in which a program made a file stays, and is not listed", async () => {
  const it = await beginKnown(1);
  const { metadata, names, stats } = it.context;
  const { attributes } = it.inode("a1");
  const time = stats.nowText();
  metadata.transaction(() => {
    const about = { kind: "file", attributes, size: 0, hash: null, originNode: null, originVersion: null } as const;
    const { id } = metadata.inodes.create({ ...about, content: "dirty", atime: time, ctime: time });
    names.add(it.folder("a1"), "new", id, "file");
  });
  // The time of the folder has been sent, the file not yet.
  metadata.nodes.update(it.row("a1").id, { dirtySince: null, due: null });
  await it.drop();
  await it.world.clock.advance(60 * 60_000);
  const [left, ...others] = metadata.entries.list(it.folder("a1"), 0, 10);
  expect([left?.name, others, it.names(), it.listed()]).toEqual(["new", [], 4, ["root"]]);
});

test("while the gateway is away nothing goes", async () => {
  const it = await beginKnown(1);
  it.context.network.failed(new RemoteError("offline", "no way"));
  await it.drop();
  expect(it.names()).toBe(NAMES);
  it.context.network.isThere();
  await it.world.clock.advance(60 * 60_000);
  expect(it.names()).toBe(2);
});

test("while the kernel is asked, news of a name comes: that one stays", async () => {
  const kernel = createKernel();
  const it = await beginKnown(1, { kernel });
  const first = it.inode("a1/0").kernelNodeId;
  kernel.onAsked((kernelNodeIds) => {
    if (!kernelNodeIds.includes(first)) return;
    it.context.metadata.nodes.update(it.row("a1/0").id, { seen: { deleted: true, revision: 9 } });
  });
  await it.drop();
  expect(it.context.metadata.nodes.below("a1").map(({ nodeId }) => nodeId)).toEqual(["a1/0"]);
});

test("what the journal tells of dropped names is passed over, and the next list shows it", async () => {
  const it = await beginKnown(1);
  await it.drop();
  const [gone, ...others] = it.tree.get("a1") ?? [];
  it.tree.set("a1", others);
  it.journal.push(entryOf({ nodeId: gone?.id ?? "" }));
  it.context.metadata.transaction(() => it.context.observer.deletion("a1/0", 9, 6));
  it.context.metadata.settings.set("cursor", "6");
  for (const id of ["a", "a1"]) await it.list(id);
  expectWhole(it, it.tree);
  expect(it.listed()).toEqual(["root", "a", "a1"]);
});

test("the kernel is asked to forget the names of a folder, and then the folder", async () => {
  const kernel = createKernel();
  const pruned: KernelNodeId[][] = [];
  const cache = {
    ...kernel.cache,
    async prune(kernelNodeIds: readonly KernelNodeId[]) {
      pruned.push([...kernelNodeIds]);
      for (const kernelNodeId of kernelNodeIds) kernel.has.delete(kernelNodeId);
    },
  };
  const it = await beginKnown(1, { kernel: { ...kernel, cache } });
  const held = ["a1/0", "a1/1"].map((id) => it.inode(id).kernelNodeId);
  const a1 = it.kernelNodeIdOf(it.folder("a1"));
  for (const kernelNodeId of [...held, a1]) kernel.has.add(kernelNodeId);
  await it.drop();
  expect(it.names()).toBe(2);
  const [names = [], folder] = pruned;
  expect([names.slice(0, 2), names.length, folder, pruned.length]).toEqual([held, 4, [a1], 2]);
});

test("where very many folders have to stay, others have their turn while they are looked at", async () => {
  const names = Array.from({ length: 300 }, (_, at) => `d${at}`);
  const tree = new Map<string, readonly Node[]>([["root", names.map((name) => folderOf(name, "root"))]]);
  for (const name of names) tree.set(name, filesIn(name, 1));
  const it = await beginKnown(1, { tree });
  const { metadata, runtime } = it.context;
  for (const name of names) metadata.nodes.update(it.row(name).id, { due: rowTime(1e15) });
  const { leastUsedAfter } = metadata.inodes;
  const looks = new Map<number, number>();
  Object.assign(metadata.inodes, {
    leastUsedAfter(...given: Parameters<typeof leastUsedAfter>) {
      const turn = Number(runtime.elapsed());
      looks.set(turn, (looks.get(turn) ?? 0) + 1);
      return leastUsedAfter(...given);
    },
  });
  await it.drop();
  expect(it.names()).toBe(600);
  expect([looks.size > 4, Math.max(...looks.values()) <= 64]).toEqual([true, true]);
});

test("a large folder goes in parts, and makes way for others in between; none of them leaves anything by halves", async () => {
  const tree = smallTree();
  tree.set("b3", filesIn("b3", 500));
  const counts: number[] = [];
  const seen: { it?: Known } = {};
  const onStep = (label: string) => {
    const { it } = seen;
    if (it === undefined || label !== "names: dropped") return;
    counts.push(it.names());
    expectNoRemains(it, it.names());
    expectWhole(it, tree);
  };
  const it = await beginKnown(1, { tree, onStep });
  seen.it = it;
  await it.drop();
  expect(it.names()).toBe(2);
  const parts = counts.map((count, at) => (at === 0 ? NAMES + 496 : (counts[at - 1] ?? 0)) - count);
  expect(Math.max(...parts)).toBeLessThanOrEqual(32);
});

test("a process that dies in between leaves a folder that is listed again as a whole", async () => {
  for (const deadly of [1, 2, 4]) {
    let passed = 0;
    const dead = new Error("dead");
    const onStep = (label: string) => {
      if (label !== "names: dropped") return;
      passed += 1;
      if (passed === deadly) throw dead;
    };
    const tree = smallTree();
    tree.set("b3", filesIn("b3", 100));
    const it = await beginKnown(1, { tree, onStep });
    const run = it.dropping.run().catch((error: unknown) => error);
    await it.world.clock.advance(LONG_MS);
    expect(await run).toBe(dead);
    const after = it.world.crash();
    const { context } = after;
    expectNoRemains({ context }, it.names());
    expectWhole({ ...it, context: { ...it.context, metadata: context.metadata, nodeRows: context.nodeRows } }, tree);
    expect(it.names()).toBeLessThan(NAMES + 96);
  }
});

test("prefetch does not read again what was dropped, and fills the room that others leave", async () => {
  const it = await beginKnown(20);
  const before = it.asked.length;
  it.start();
  await it.drop();
  await it.world.clock.advance(60 * 60_000);
  expect([it.names(), it.asked.length - before]).toEqual([19, 0]);
  expect(it.known()).toBe("visited");
});

test("nothing is dropped without a limit, while little is too much, or where the kernel cannot be asked", async () => {
  for (const [namesAhead, isAsked] of [
    [undefined, true],
    [NAMES, true],
    [1, false],
  ] as const) {
    const kernel = createKernel();
    const { cache: _, ...deaf } = kernel;
    const it = await beginKnown(namesAhead, { kernel: isAsked ? kernel : { ...deaf, cache: {} as never } });
    await it.drop();
    expect([namesAhead, it.names()]).toEqual([namesAhead, NAMES]);
  }
});

test.each([
  ["has no journal", PLAIN],
  ["holds no attributes, which would be lost", without("attributes")],
] as const)("nothing is dropped where the gateway %s", async (_, features) => {
  const it = await beginKnown(1);
  Object.assign(it.context.client, { features });
  await it.drop();
  expect(it.names()).toBe(NAMES);
});

test("a folder in use costs one change of its row in a while, whatever is looked up in it", async () => {
  const it = await beginKnown(0);
  const { metadata } = it.context;
  const used = new Set<unknown>();
  for (let second = 0; second < 600; second += 1) {
    await it.world.clock.advance(1_000);
    const looked = it.fileSystem.lookup(CALLER, it.kernelNodeIdOf(it.folder("a1")), "f0");
    await it.world.clock.advance(1);
    await looked;
    metadata.transaction(() => metadata.settings.set("written", String(second)));
    used.add(metadata.inodes.get(it.folder("a1"))?.used);
  }
  expect(used.size).toBe(5);
});
