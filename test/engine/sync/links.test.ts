/** Names of a linked file, told of one by one: which content they show, what is sent of it, and which are another file. */
import { expect, test } from "vitest";
import { type Attributes, patchAttributes } from "../../../src/contract/attributes.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { savesOfContent } from "../../../src/contract/saves.ts";
import { giveName } from "../../../src/engine/sync/link-groups.ts";
import { inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { EMPTY, makeWorld, namesIn, nodeOf, remove, rowOf, sendNext } from "../support/rows-world.ts";

/** The first save says of which content it is: "one.1". */
function link(...saves: string[]): Attributes {
  const hash = saves[0]?.replace(/\..*/, "") ?? "";
  return { link: { group: "g", hash, saves } };
}

function linked(id: string, saves: string[], change: Partial<Node> = {}, more: Attributes = {}): Node {
  const attributes = { ...link(...saves), ...more };
  return nodeOf(id, { contentHash: attributes.link?.hash ?? null, attributes, ...change });
}

/** Its next version, as somebody sent it. */
const saved = (id: string, ...saves: string[]) => linked(id, saves, { head: `${saves[0]} of ${id}`, revision: 2 });
const savedAs = (mode: number, id: string, ...saves: string[]) =>
  linked(id, saves, { head: `${saves[0]} of ${id}`, revision: 2 }, { mode });
const third = (id: string, ...saves: string[]) => linked(id, saves, { head: `${saves[0]} of ${id}`, revision: 3 });

type World = Awaited<ReturnType<typeof makeWorld>>;

/** What the plan sends of a node, with the attributes it has afterwards. */
function linkSent(world: World, name: string, before: Attributes = {}): Attributes["link"] {
  const step = world.context.planner.advance(rowOf(world, name).id)?.step;
  if (step?.do !== "send" || !("hash" in step.request)) throw new Error(`no content to send: ${JSON.stringify(step)}`);
  return patchAttributes(before, step.request.attributes).link;
}

const inodeAt = ({ metadata }: World, name: string) => metadata.entries.find(ROOT_INODE, name)?.inode ?? inodeId(0);

/** By name: which inode it is a name of, and what that shows. */
function shown(world: World, ...names: string[]) {
  const inodes = names.map((name) => inodeAt(world, name));
  return inodes.map((id) => `${inodes.indexOf(id)} ${world.metadata.inodes.get(id)?.hash}`);
}

async function names(...more: string[]) {
  const world = await makeWorld();
  for (const id of ["a", "b", ...more]) world.context.observer.node(linked(id, ["one.1"]));
  return world;
}

const mark = (world: World, name: string) =>
  world.metadata.transaction(() => world.context.queue.setNodeDirty(rowOf(world, name)));

/** A program writes what is empty. */
function writeHere(world: World, name: string) {
  const { context, metadata } = world;
  const inode = inodeAt(world, name);
  const changes = (metadata.inodes.get(inode)?.changes ?? 0) + 1;
  metadata.inodes.update(inode, { content: "dirty", hash: null, changes });
  metadata.inodes.update(inode, { hash: EMPTY, size: 0 });
  metadata.transaction(() => context.queue.setInodeDirty(inode));
}

test("what was written by one name is shown by all, and sent to the others with the saves it came after", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "two.2", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 two", "0 two"]);
  mark(world, "b");
  expect(linkSent(world, "b", link("one.1"))).toEqual(link("two.2", "one.1").link);
});

test("what is behind, and comes in later, is not shown", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "three.3", "two.2", "one.1"));
  world.context.observer.node(saved("b", "two.2", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 three", "0 three"]);
  expect(rowOf(world, "b").base?.hash).toBe("two");
});

test("content that comes back is a save of its own: what was there in between is behind", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "one.3", "two.2", "one.1"));
  world.context.observer.node(saved("b", "two.2", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 one", "0 one"]);
});

test("the same where the name comes in for the first time", async () => {
  const world = await names();
  world.context.observer.node(linked("c", ["one.3", "two.2", "one.1"]));
  world.context.observer.node(saved("b", "two.2", "one.1"));
  expect(shown(world, "a", "b", "c")).toEqual(["0 one", "0 one", "0 one"]);
});

test("equal content that came about in two ways: what came after either is newer", async () => {
  const world = await makeWorld();
  world.context.observer.node(linked("a", ["x.5"]));
  world.context.observer.node(linked("b", ["x.9"]));
  expect(shown(world, "a", "b")).toEqual(["0 x", "0 x"]);
  world.context.observer.node(saved("b", "z.1", "x.9"));
  expect(shown(world, "a", "b")).toEqual(["0 z", "0 z"]);
});

test("what is known to have been before what is shown stays known when that is replaced", async () => {
  const world = await names();
  world.context.observer.node(linked("c", ["one.9", "nil.8"]));
  world.context.observer.node(saved("a", "two.2", "one.1"));
  world.context.observer.node(linked("d", ["nil.8"]));
  expect(shown(world, "a", "b", "c", "d")).toEqual(["0 two", "0 two", "0 two", "0 two"]);
});

test("the same bytes written again: what somebody saves afterwards is newer", async () => {
  const world = await names();
  const { metadata } = world;
  const inode = inodeAt(world, "a");
  // A program wrote, and the snapshot found what the node has.
  metadata.inodes.update(inode, { content: "dirty", changes: 1, hash: null });
  metadata.inodes.update(inode, { content: "clean", hash: "one" });
  world.context.observer.node(saved("b", "two.2", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 two", "0 two"]);
});

test("two that were written at the same time are two files, until somebody who knows both makes them one", async () => {
  const world = await names("c");
  world.context.observer.node(saved("a", "two.2", "one.1"));
  world.context.observer.node(saved("b", "other.3", "one.1"));
  expect(shown(world, "a", "b", "c")).toEqual(["0 two", "1 other", "0 two"]);
  world.context.observer.node(third("a", "other.3", "one.1", "two.2"));
  expect(shown(world, "a", "b", "c")).toEqual(["0 other", "0 other", "0 other"]);
});

test("the same where what makes them one comes in by another name", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "two.2", "one.1"));
  world.context.observer.node(saved("b", "other.3", "one.1"));
  world.context.observer.node(linked("c", ["other.3", "one.1", "two.2"]));
  expect(shown(world, "a", "b", "c")).toEqual(["0 other", "0 other", "0 other"]);
  world.context.observer.node(linked("d", ["next.4", "other.3", "one.1", "two.2"]));
  expect(shown(world, "a", "b", "c", "d")).toEqual(["0 next", "0 next", "0 next", "0 next"]);
});

test("the same where that is a name that was removed here", async () => {
  const world = await names("d");
  world.context.observer.node(saved("a", "two.2", "one.1"));
  world.context.observer.node(saved("b", "other.3", "one.1"));
  remove(world, ROOT_INODE, "d");
  world.context.observer.node(saved("d", "next.4", "two.2", "other.3", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 next", "0 next"]);
});

test("one of the two is open: the other shows what came after both before the name that has it goes", async () => {
  const world = await names("d");
  world.context.observer.node(saved("a", "two.2", "one.1"));
  world.context.observer.node(saved("b", "other.3", "one.1"));
  world.metadata.inodes.update(inodeAt(world, "a"), { content: "open" });
  remove(world, ROOT_INODE, "d");
  world.context.observer.node(saved("d", "next.4", "two.2", "other.3", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 two", "1 next"]);
});

test.each([
  { what: "what came after both", told: third("a", "next.4", "other.3", "two.2", "one.1"), hash: "next" },
  { what: "that it was brought up", told: third("b", "two.2", "one.1", "other.3"), hash: "two" },
])(
  "a mode changed here, and not sent, of a name that was apart stays when the names become one: $what",
  async ({ told, hash }) => {
    const world = await names();
    const { metadata } = world;
    world.context.observer.node(saved("a", "two.2", "one.1"));
    world.context.observer.node(saved("b", "other.3", "one.1"));
    const inode = inodeAt(world, "b");
    metadata.inodes.update(inode, { attributes: { mode: 0o600 } });
    metadata.transaction(() => world.context.queue.setInodeDirty(inode));
    world.context.observer.node(told);
    expect(shown(world, "a", "b")).toEqual([`0 ${hash}`, `0 ${hash}`]);
    expect(metadata.inodes.get(inodeAt(world, "b"))?.attributes.mode).toBe(0o600);
    expect(rowOf(world, "b").dirtySince).not.toBeNull();
  },
);

test("a file without a name is left alone when names of its group come in", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "two.2", "one.1"));
  world.context.observer.node(saved("b", "other.3", "one.1"));
  // It was removed while a program reads it.
  const inode = inodeAt(world, "b");
  remove(world, ROOT_INODE, "b");
  const kernelNodeId = world.metadata.inodes.get(inode)?.kernelNodeId;
  for (let at = 0; at < 5; at += 1) {
    world.context.observer.node(linked(`n${at}`, ["next.4", "two.2", "other.3", "one.1"]));
  }
  expect(world.metadata.inodes.get(inode)?.kernelNodeId).toBe(kernelNodeId);
});

test("apart where they come in for the first time too, and whatever becomes of the one, the other is not sent it", async () => {
  const world = await makeWorld();
  world.context.observer.node(linked("a", ["two.2", "one.1"]));
  world.context.observer.node(linked("b", ["other.3", "one.1"]));
  expect(shown(world, "a", "b")).toEqual(["0 two", "1 other"]);
  writeHere(world, "a");
  expect(world.context.planner.advance(rowOf(world, "b").id)).toBeUndefined();
  const [, ...before] = linkSent(world, "a", link("two.2", "one.1"))?.saves ?? [];
  expect(before).toEqual(["two.2", "one.1"]);
});

test("what was written here came in the place of all that led to what was there", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "one.5", "one.1"));
  writeHere(world, "b");
  const [id] = savesOfContent(EMPTY, ["one.5"]);
  expect(linkSent(world, "a", link("one.1"))?.saves).toEqual([id, "one.5", "one.1"]);
  expect(linkSent(world, "b", link("one.1"))?.saves).toEqual([id, "one.5", "one.1"]);
});

test("a turn has ended, and nothing was sent yet: what came after what is shown is no conflict", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "two.2", "one.1"));
  mark(world, "b");
  world.context.observer.node(saved("b", "three.3", "two.2", "one.1"));
  expect(namesIn(world, ROOT_INODE)).toEqual(["a", "b"]);
  expect(shown(world, "a", "b")).toEqual(["0 three", "0 three"]);
});

test("a link that names no saves is merged into what is there: its content is not what those are of", async () => {
  const world = await names();
  const attributes = patchAttributes(link("one.1"), { link: { group: "g", hash: "theirs" } });
  world.context.observer.node(nodeOf("a", { contentHash: "theirs", attributes, head: "2nd", revision: 2 }));
  expect(shown(world, "a", "b")).toEqual(["0 theirs", "0 theirs"]);
});

test("linked here while somebody who knows of no links saved: that came after what the names had", async () => {
  const world = await makeWorld();
  const { metadata } = world;
  const [one] = savesOfContent("one");
  world.context.observer.node(nodeOf("a", { contentHash: "one" }));
  world.context.observer.node(nodeOf("b", { contentHash: "one" }));
  const inode = inodeAt(world, "a");
  metadata.transaction(() => {
    metadata.inodes.update(inode, { linkGroup: "g" });
    const b = metadata.entries.find(ROOT_INODE, "b");
    if (b !== undefined) metadata.entries.setInode(b.id, inode);
    const row = rowOf(world, "b");
    if (row.base !== null) {
      metadata.nodes.update(row.id, { base: { ...row.base, attributes: link(`${one}`) } });
    }
    world.context.queue.setInodeDirty(inode);
  });
  world.context.observer.node(nodeOf("a", { contentHash: "theirs", head: "2nd", revision: 2 }));
  const step = world.context.planner.advance(rowOf(world, "a").id)?.step;
  const sent = step?.do === "send" && "attributes" in step.request ? step.request.attributes?.link : undefined;
  expect(sent?.saves).toContain(one);
});

test("a conflict was kept and its save sent: a name that still has what was set aside is behind", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "mine.2", "one.1"));
  mark(world, "b");
  world.context.observer.node(saved("b", "theirs.3", "one.1"));
  // Kept beside; now a gets theirs.
  mark(world, "a");
  const attempt = sendNext(world, rowOf(world, "a"), "key");
  const { request } = attempt;
  const saves = ["theirs.3", "mine.2", "one.1"];
  expect("attributes" in request ? request.attributes?.link?.saves : undefined).toEqual(saves);
  const answer = { contentHash: "theirs", head: "3rd", revision: 3, attributes: link(...saves), lastKey: "key" };
  world.context.answers.acknowledge(attempt, nodeOf("a", answer), 5);
  expect(rowOf(world, "a").base?.attributes.link?.saves).toEqual(saves);
  world.context.observer.node(linked("c", ["mine.2", "one.1"]));
  expect(shown(world, "a", "b", "c")).toEqual(["0 theirs", "0 theirs", "0 theirs"]);
});

/** All names one after the other have had this content. */
function had(world: World, ...saves: string[]) {
  for (const id of ["a", "b"]) world.context.observer.node(saved(id, ...saves));
}

test("somebody goes back to former content while somebody else writes: two that are apart", async () => {
  for (const told of [
    [third("a", "three.3", "two.2", "one.1"), third("b", "one.4", "two.2", "one.1")],
    [third("b", "one.4", "two.2", "one.1"), third("a", "three.3", "two.2", "one.1")],
  ]) {
    const world = await names();
    had(world, "two.2", "one.1");
    for (const node of told) world.context.observer.node(node);
    expect(shown(world, "a", "b")).toEqual(["0 three", "1 one"]);
  }
});

test("the name it was put back by was removed here: it comes back, nobody here has seen that", async () => {
  const world = await names();
  had(world, "two.2", "one.1");
  world.context.observer.node(third("a", "three.3", "two.2", "one.1"));
  remove(world, ROOT_INODE, "b");
  world.context.observer.node(third("b", "one.4", "two.2", "one.1"));
  expect(namesIn(world, ROOT_INODE)).toEqual(["a", "b"]);
});

test("both go back, to different contents: they are apart", async () => {
  const world = await names();
  const before = ["three.3", "two.2", "one.1"];
  had(world, ...before);
  world.context.observer.node(third("a", "two.5", ...before));
  world.context.observer.node(third("b", "one.6", ...before));
  expect(shown(world, "a", "b")).toEqual(["0 two", "1 one"]);
});

test("the same bytes are written again here, and somebody goes back to what was before them", async () => {
  const world = await names();
  const { metadata } = world;
  had(world, "two.2", "one.1");
  const inode = inodeAt(world, "a");
  for (let at = 0; at < 20; at += 1) {
    metadata.inodes.update(inode, { content: "dirty", changes: at + 1, hash: null });
    metadata.inodes.update(inode, { content: "clean", hash: "two" });
  }
  world.context.observer.node(linked("c", ["one.1"]));
  expect(shown(world, "a", "b", "c")).toEqual(["0 two", "0 two", "0 two"]);
  for (const id of ["a", "b"]) world.context.observer.node(third(id, "one.3", "two.2", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 one", "0 one"]);
});

test("a turn has ended: the mode of what comes after is not replaced by the one of before", async () => {
  const world = await names();
  world.context.observer.node(savedAs(0o600, "a", "two.2", "one.1"));
  mark(world, "b");
  world.context.observer.node(savedAs(0o755, "b", "three.3", "two.2", "one.1"));
  expect(shown(world, "a", "b")).toEqual(["0 three", "0 three"]);
  expect(world.metadata.inodes.get(inodeAt(world, "a"))?.attributes.mode).toBe(0o755);
});

test("the same where it comes in by a new name, and where names that were apart become one", async () => {
  const world = await names();
  world.context.observer.node(savedAs(0o600, "a", "two.2", "one.1"));
  mark(world, "b");
  world.context.observer.node(linked("c", ["three.3", "two.2", "one.1"], {}, { mode: 0o755 }));
  expect(shown(world, "a", "b", "c")).toEqual(["0 three", "0 three", "0 three"]);
  expect(world.metadata.inodes.get(inodeAt(world, "a"))?.attributes.mode).toBe(0o755);

  const other = await names("c");
  other.context.observer.node(savedAs(0o600, "a", "two.2", "one.1"));
  other.context.observer.node(savedAs(0o644, "c", "other.3", "one.1"));
  mark(other, "b");
  const next = ["next.4", "other.3", "two.2", "one.1"];
  other.context.observer.node(linked("c", next, { head: "3rd of c", revision: 3 }, { mode: 0o755 }));
  expect(shown(other, "a", "b", "c")).toEqual(["0 next", "0 next", "0 next"]);
  expect(other.metadata.inodes.get(inodeAt(other, "a"))?.attributes.mode).toBe(0o755);
});

test("a name that waits for somebody's turn waits as long when it becomes one of another file", async () => {
  const world = await names();
  const { context, metadata } = world;
  context.observer.node(saved("a", "two.2", "one.1"));
  context.observer.node(nodeOf("c"));
  const entry = metadata.entries.find(ROOT_INODE, "b");
  const from = metadata.inodes.get(inodeAt(world, "b"));
  if (entry === undefined || from === undefined) throw new Error("no b");
  const turn = metadata.linkLeases.get(from.id);
  expect(turn).toMatchObject({ reached: 0 });
  metadata.transaction(() => giveName(context, entry, from, inodeAt(world, "c")));
  expect(metadata.linkLeases.get(inodeAt(world, "c"))).toEqual({ ...turn, inode: inodeAt(world, "c") });
});

test("a mode changed here and not sent stays with the name that leaves", async () => {
  const world = await names();
  const { metadata } = world;
  const inode = inodeAt(world, "a");
  metadata.inodes.update(inode, { attributes: { mode: 0o600 } });
  metadata.transaction(() => world.context.queue.setInodeDirty(inode));
  // Somebody who knows of no links writes b.
  const theirs = { contentHash: "theirs", head: "2nd", revision: 2, attributes: link("one.1") };
  world.context.observer.node(nodeOf("b", theirs));
  for (const name of ["a", "b"]) expect(metadata.inodes.get(inodeAt(world, name))?.attributes.mode).toBe(0o600);
});

test("one of two names was removed here: what comes in by the other is judged by the saves too", async () => {
  const world = await names();
  remove(world, ROOT_INODE, "b");
  world.context.observer.node(saved("b", "three.3", "two.2", "one.1"));
  expect(shown(world, "a")).toEqual(["0 three"]);
  world.context.observer.node(saved("a", "two.2", "one.1"));
  expect(shown(world, "a")).toEqual(["0 three"]);
  world.context.observer.node(third("a", "four.4", "three.3", "two.2", "one.1"));
  expect(shown(world, "a")).toEqual(["0 four"]);
  expect(namesIn(world, ROOT_INODE)).toEqual(["a"]);
});

test("a turn has ended, and what comes in is behind what is shown: that is no conflict", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "three.3", "two.2", "one.1"));
  mark(world, "b");
  world.context.observer.node(saved("b", "two.2", "one.1"));
  expect(namesIn(world, ROOT_INODE)).toEqual(["a", "b"]);
  expect(shown(world, "a", "b")).toEqual(["0 three", "0 three"]);
});

test("a name that another file took elsewhere is none of its group's, also where that is by chance what they show", async () => {
  const world = await names();
  world.context.observer.node(saved("a", "two.2", "one.1"));
  // Its link is that of the content before, as a rename over it leaves it.
  world.context.observer.node(
    nodeOf("b", { contentHash: "two", head: "other", revision: 2, attributes: link("one.1") }),
  );
  expect(shown(world, "a", "b")).toEqual(["0 two", "1 two"]);
  expect(world.metadata.inodes.get(inodeAt(world, "b"))?.linkGroup).toBeNull();
  writeHere(world, "a");
  expect(shown(world, "a", "b")).toEqual([`0 ${EMPTY}`, "1 two"]);
});
