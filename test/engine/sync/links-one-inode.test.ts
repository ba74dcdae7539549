/** Of two inodes that turn out to be one file: which goes on, in whichever order their nodes are told of. */
import { expect, test } from "vitest";
import type { Attributes } from "../../../src/contract/attributes.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { savesOfContent } from "../../../src/contract/saves.ts";
import type { Changed } from "../../../src/metadata/changed.ts";
import { inodeId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { EMPTY, makeWorld, nodeOf, rowOf } from "../support/rows-world.ts";

type World = Awaited<ReturnType<typeof makeWorld>>;

const OLD = savesOfContent("one");
const NEW = savesOfContent("two", OLD);

/** As the gateway has a name of the group; `hash`: of what was saved last. */
function linked(id: string, hash: string, saves: readonly string[], change: Partial<Node> = {}, more: Attributes = {}) {
  const attributes: Attributes = { ...more, link: { group: "g", hash, saves: [...saves] } };
  return nodeOf(id, { contentHash: hash, attributes, ...change });
}

const name = (id: string, more: Attributes = {}) => linked(id, "one", OLD, {}, more);
/** What was known before it was linked. */
const plain = (id: string, more: Attributes = {}) => nodeOf(id, { contentHash: "one", attributes: more });
/** The same, linked since. */
const relinked = (id: string, more: Attributes = {}) => linked(id, "one", OLD, { revision: 2 }, more);
/** Linked, and saved since. */
const saved = (id: string, change: Partial<Node> = {}) => linked(id, "two", NEW, { head: `two of ${id}`, ...change });

function inodeAt({ metadata }: World, entry: string): Inode {
  const inode = metadata.inodes.get(metadata.entries.find(ROOT_INODE, entry)?.inode ?? inodeId(0));
  if (inode === undefined) throw new Error(`no ${entry}`);
  return inode;
}

const ids = (world: World, ...all: string[]) => all.map((one) => inodeAt(world, one).id);

/** A world that knows `a`, not linked so far. */
async function knowing(...nodes: Node[]) {
  const world = await makeWorld();
  for (const node of nodes) world.context.observer.node(node);
  const told: Changed[] = [];
  world.metadata.changed.onTell((changed) => told.push(changed));
  return { world, a: inodeAt(world, "a"), told };
}

/** In which order the nodes of names that are made elsewhere, and of the one they are made of, are told of. */
const ORDERS: readonly (readonly string[])[] = [
  ["hl", "a"],
  ["a", "hl"],
  ["hl", "hm", "a"],
  ["hl", "a", "hm"],
  ["a", "hl", "hm"],
];

for (const isOpen of [true, false]) {
  const held = isOpen ? "held open" : "not open";
  test.each(ORDERS.map((order) => ({ what: order.join(", "), order })))(
    `linked elsewhere, told of as $what: a, which is ${held}, stays the inode it is, with all names`,
    async ({ order }) => {
      const { world, a, told } = await knowing(plain("a"));
      if (isOpen) await world.open(a);
      for (const id of order) world.context.observer.node(id === "a" ? relinked("a") : name(id));
      expect(ids(world, ...order)).toEqual(order.map(() => a.id));
      expect(inodeAt(world, "a")).toMatchObject({
        kernelNodeId: a.kernelNodeId,
        linkGroup: "g",
        hash: "one",
        content: "clean",
      });
      expect(world.metadata.entries.links(a.id)).toBe(order.length);
      // Who asks for the number of its names hears of the new one; the name itself is what it was.
      expect(told.some(({ inodes }) => inodes.has(a.id))).toBe(true);
      expect(told.some(({ switched }) => switched.has(a.id))).toBe(false);
      expect(told.some(({ names }) => names.get(ROOT_INODE)?.has("a") ?? false)).toBe(false);
      for (const id of order) expect(world.context.planner.advance(rowOf(world, id).id)).toBeUndefined();
    },
  );
}

test.each(ORDERS.map((order) => ({ what: order.join(", "), order })))(
  "linked and saved elsewhere, told of as $what: the inode stays and shows what came",
  async ({ order }) => {
    const { world, a } = await knowing(plain("a"));
    await world.open(a);
    for (const id of order) world.context.observer.node(id === "a" ? saved("a", { revision: 2 }) : saved(id));
    expect(ids(world, ...order)).toEqual(order.map(() => a.id));
    expect(inodeAt(world, "a")).toMatchObject({ hash: "two", content: "clean", size: 3, saves: NEW });
    // Who has it open stays on the bytes he opened.
    expect(inodeAt(world, "a").kernelNodeId).not.toBe(a.kernelNodeId);
    expect(world.metadata.inodes.kernelNodeIds(a.id)).toContain(a.kernelNodeId);
  },
);

test("the name that is made elsewhere is behind, or ahead of, what it was made of when that is heard of", async () => {
  for (const [first, second] of [
    [name("hl"), saved("a", { revision: 2 })],
    [saved("hl"), relinked("a")],
  ] as const) {
    const { world, a } = await knowing(plain("a"));
    await world.open(a);
    for (const node of [first, second]) world.context.observer.node(node);
    expect(ids(world, "a", "hl")).toEqual([a.id, a.id]);
    expect(inodeAt(world, "a")).toMatchObject({ hash: "two", content: "clean" });
    expect(world.metadata.linkLeases.get(a.id)).toBeDefined();
  }
});

test("only the younger is open: that one goes on; of two that are open the older", async () => {
  for (const isOlderOpen of [false, true]) {
    const { world, a } = await knowing(plain("a"));
    world.context.observer.node(name("hl"));
    const young = inodeAt(world, "hl");
    if (isOlderOpen) await world.open(a);
    await world.open(young);
    world.context.observer.node(relinked("a"));
    const { id } = isOlderOpen ? a : young;
    expect(ids(world, "a", "hl")).toEqual([id, id]);
  }
});

test("one is open for writing: that one goes on, and keeps what was written", async () => {
  for (const which of ["a", "hl"]) {
    const { world, a } = await knowing(plain("a"));
    world.context.observer.node(name("hl"));
    await world.open(inodeAt(world, which === "a" ? "hl" : "a"));
    const writer = inodeAt(world, which);
    await world.open(writer, { write: true });
    world.context.observer.node(relinked("a"));
    expect(ids(world, "a", "hl")).toEqual([writer.id, writer.id]);
    expect(inodeAt(world, "a")).toMatchObject({ kernelNodeId: writer.kernelNodeId, content: "open" });
    expect(a.id === writer.id).toBe(which === "a");
  }
});

/** A program here has cut it short to nothing. */
function emptied({ context, metadata }: World, { id, changes }: Inode): void {
  metadata.transaction(() => {
    metadata.inodes.update(id, { content: "dirty", hash: EMPTY, size: 0, changes: changes + 1 });
    context.queue.setInodeDirty(id);
  });
}

test("what was written by the younger, and not sent yet, goes on in that", async () => {
  const { world, a } = await knowing(plain("a"));
  world.context.observer.node(name("hl"));
  await world.open(a);
  const young = inodeAt(world, "hl");
  emptied(world, young);
  world.context.observer.node(relinked("a"));
  expect(ids(world, "a", "hl")).toEqual([young.id, young.id]);
  expect(inodeAt(world, "a")).toMatchObject({ content: "dirty", hash: EMPTY, kernelNodeId: young.kernelNodeId });
});

test("what was written by the older goes on in that, and the younger's name shows it", async () => {
  const { world, a } = await knowing(plain("a"));
  world.context.observer.node(name("hl"));
  await world.open(inodeAt(world, "hl"));
  emptied(world, a);
  world.context.observer.node(relinked("a"));
  expect(ids(world, "a", "hl")).toEqual([a.id, a.id]);
  expect(inodeAt(world, "a")).toMatchObject({ id: a.id, content: "dirty", hash: EMPTY, kernelNodeId: a.kernelNodeId });
});

test.each(["a", "hl", "both"])("a mode changed here, and not sent, of %s stays, and is sent to both", async (which) => {
  const { world, a } = await knowing(plain("a"));
  await world.open(a);
  world.context.observer.node(name("hl"));
  const { metadata } = world;
  for (const one of ["a", "hl"]) {
    if (one !== which && which !== "both") continue;
    const { id } = inodeAt(world, one);
    metadata.inodes.update(id, { attributes: { mode: 0o600 } });
    metadata.transaction(() => world.context.queue.setInodeDirty(id));
  }
  world.context.observer.node(relinked("a"));
  expect(ids(world, "a", "hl")).toEqual([a.id, a.id]);
  expect(inodeAt(world, "a")).toMatchObject({ kernelNodeId: a.kernelNodeId, attributes: { mode: 0o600 } });
  for (const one of ["a", "hl"]) expect(rowOf(world, one).dirtySince).not.toBeNull();
});

test("attributes that came with the younger's node are shown", async () => {
  const { world, a } = await knowing(plain("a"));
  await world.open(a);
  world.context.observer.node(name("hl", { mode: 0o700 }));
  world.context.observer.node(relinked("a", { mode: 0o700 }));
  expect(ids(world, "a", "hl")).toEqual([a.id, a.id]);
  expect(inodeAt(world, "a")).toMatchObject({ kernelNodeId: a.kernelNodeId, attributes: { mode: 0o700 } });
});

test("a turn of the younger's is waited for in the one that goes on", async () => {
  const { world, a } = await knowing(plain("a"));
  await world.open(a);
  for (const id of ["hl", "hm"]) world.context.observer.node(name(id));
  world.context.observer.node(saved("hl", { revision: 2 }));
  const turn = world.metadata.linkLeases.get(inodeAt(world, "hl").id);
  expect(turn).toBeDefined();
  world.context.observer.node(relinked("a"));
  expect(inodeAt(world, "a")).toMatchObject({ id: a.id, hash: "two" });
  expect(world.metadata.linkLeases.get(a.id)).toEqual({ ...turn, inode: a.id });
});

test("a name that takes its group's content, and never had to do with that before, is theirs from then on", async () => {
  // Another linked file was renamed over it: that is the one whose number stays.
  const other = (id: string) => linked(id, "three", savesOfContent("three"));
  const { world, a } = await knowing(plain("a"), other("x"), other("y"));
  await world.open(a);
  const x = inodeAt(world, "x");
  world.context.observer.node({ ...other("a"), head: "renamed over", revision: 2 });
  expect(ids(world, "a", "x", "y")).toEqual([x.id, x.id, x.id]);
  expect(inodeAt(world, "x").kernelNodeId).toBe(x.kernelNodeId);
  expect(world.metadata.entries.links(a.id)).toBe(0);
});

test("the same where that has by chance the content that it had, and it was one of other links before", async () => {
  const other = (id: string, more: Partial<Node> = {}) =>
    nodeOf(id, { contentHash: "one", attributes: { link: { group: "h", hash: "one", saves: [...OLD] } }, ...more });
  const { world, a } = await knowing(name("a"), other("x"), other("y"));
  await world.open(a);
  const x = inodeAt(world, "x");
  world.context.observer.node(other("a", { head: "renamed over", revision: 2 }));
  expect(ids(world, "a", "x", "y")).toEqual([x.id, x.id, x.id]);
});

test("names that were apart become one: the inode that is open goes on", async () => {
  for (const which of ["a", "b"]) {
    const { world, a } = await knowing(name("a"), name("b"));
    const write = (id: string, hash: string, revision: number, before = OLD) =>
      linked(id, hash, savesOfContent(hash, before), { head: `${hash} of ${id}`, revision });
    world.context.observer.node(write("a", "mine", 2));
    world.context.observer.node(write("b", "theirs", 2));
    const [first, second] = [inodeAt(world, "a"), inodeAt(world, "b")];
    expect(first.id).toBe(a.id);
    expect(second.id).not.toBe(a.id);
    await world.open(which === "a" ? first : second);
    const both = [...savesOfContent("mine", OLD), ...savesOfContent("theirs", OLD)];
    world.context.observer.node(write("c", "next", 1, both));
    const { id } = which === "a" ? first : second;
    expect(ids(world, "a", "b", "c")).toEqual([id, id, id]);
    expect(inodeAt(world, "a")).toMatchObject({ hash: "next", content: "clean" });
  }
});

test("a file without a name, which a program has open, takes no names", async () => {
  const { world, a } = await knowing(name("a"), name("b"));
  await world.open(a);
  const alone = world.metadata.inodes.create({ ...inodeAt(world, "a") });
  world.metadata.inodes.update(alone.id, { linkGroup: "g", saves: OLD });
  const { kernelNodeId } = inodeAt(world, "a");
  for (const id of ["c", "d"]) world.context.observer.node(saved(id));
  expect(ids(world, "a", "b", "c", "d")).toEqual([a.id, a.id, a.id, a.id]);
  expect(world.metadata.inodes.kernelNodeIds(a.id)).toContain(kernelNodeId);
  expect(world.metadata.entries.links(alone.id)).toBe(0);
});
