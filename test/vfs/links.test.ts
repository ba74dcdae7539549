/** Which of two contents of a linked file came first, by the saves their nodes name: what is shown, what is sent, what stays apart. */
import { expect, test } from "vitest";
import { type Attributes, patchAttributes } from "../../src/contract/attributes.ts";
import type { Node } from "../../src/contract/resources.ts";
import { linkOfContent, savesOfContent } from "../../src/contract/saves.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { advance } from "../../src/vfs/advance.ts";
import { markInode } from "../../src/vfs/changes.ts";
import { type Order, orderOf } from "../../src/vfs/links.ts";
import { observeNode } from "../../src/vfs/observe.ts";
import { EMPTY, makeWorld, nodeOf, rowOf } from "../support/rows-world.ts";

const link = (hash: string, ...saves: string[]): Attributes => ({ link: { group: "g", hash, saves } });

const linked = (id: string, hash: string, saves: string[], change: Partial<Node> = {}) =>
  nodeOf(id, { contentHash: hash, attributes: link(hash, ...saves), ...change });

/** Its next version, as somebody sent it. */
const saved = (id: string, hash: string, ...saves: string[]) =>
  linked(id, hash, saves, { head: `${hash} of ${id}`, revision: 2 });

type World = Awaited<ReturnType<typeof makeWorld>>;

/** What the plan sends of a node, with the attributes it has afterwards. */
function linkSent(world: World, name: string, before: Attributes = {}): Attributes["link"] {
  const step = advance(world.context, rowOf(world, name).id)?.step;
  if (step?.do !== "send" || !("hash" in step.request)) throw new Error(`no content to send: ${JSON.stringify(step)}`);
  return patchAttributes(before, step.request.attributes).link;
}

const inodeAt = ({ metadata }: World, name: string) => metadata.entries.find(ROOT_INODE, name)?.inode ?? 0;

/** By name: which inode it is a name of, and what that shows. */
function shown(world: World, ...names: string[]) {
  const inodes = names.map((name) => inodeAt(world, name));
  return names.map((_, at) => {
    const id = inodes[at] ?? 0;
    return `${inodes.indexOf(id)} ${world.metadata.inodes.get(id)?.hash}`;
  });
}

async function twoNames() {
  const world = await makeWorld();
  observeNode(world.context, linked("a", "one", ["1"]));
  observeNode(world.context, linked("b", "one", ["1"]));
  return world;
}

/** A program writes what is empty. */
function writeHere({ context, metadata }: World, name: string) {
  const inode = inodeAt({ context, metadata } as World, name);
  const changes = (metadata.inodes.get(inode)?.changes ?? 0) + 1;
  metadata.inodes.update(inode, { content: "dirty", hash: null, changes });
  metadata.inodes.update(inode, { hash: EMPTY, size: 0 });
  metadata.transaction(() => markInode(context, inode));
}

const ONE = savesOfContent("one");
const TWO = savesOfContent("two", ONE);
const ONE_AGAIN = savesOfContent("one", TWO);

const ORDERS: readonly (readonly [
  what: string,
  inode: [string | null, readonly string[] | null],
  node: Node,
  Order,
])[] = [
  ["the same content, however it came about", ["x", ["5"]], linked("n", "x", ["9"]), "same"],
  ["what was there before", ["x", ["3", "2", "1"]], linked("n", "y", ["1"]), "behind"],
  ["what came afterwards", ["x", ["2", "1"]], linked("n", "y", ["4", "3", "2", "1"]), "newer"],
  ["what was written at the same time", ["x", ["2", "1"]], linked("n", "y", ["3", "1"]), "apart"],
  ["what is being written grew from it", [null, ["2", "1"]], linked("n", "y", ["2", "1"]), "behind"],
  ["what is being written grew from what it grew from", [null, ["2", "1"]], linked("n", "y", ["3", "2"]), "apart"],
  ["what was never saved by another name", ["one", null], linked("n", "two", [...TWO]), "newer"],
  ["its own content of long ago, which came back since", ["two", TWO], linked("n", "one", [...ONE_AGAIN]), "newer"],
  ["content that was there twice, the first time", ["one", ONE_AGAIN], linked("n", "two", [...TWO]), "behind"],
  [
    "a link that names no saves",
    ["x", ["2", "1"]],
    nodeOf("n", { attributes: { link: { group: "g", hash: "three" } } }),
    "apart",
  ],
];

test.each(ORDERS)("%s", (_, [hash, saves], node, order) => {
  expect(orderOf({ hash, saves }, node)).toBe(order);
});

test("what was written by one name is shown by all, and sent to the others with the saves it came after", async () => {
  const world = await twoNames();
  observeNode(world.context, saved("a", "two", "2", "1"));
  expect(shown(world, "a", "b")).toEqual(["0 two", "0 two"]);
  world.metadata.transaction(() => markInode(world.context, inodeAt(world, "b")));
  expect(linkSent(world, "b", link("one", "1"))).toEqual(link("two", "2", "1").link);
});

test("what is behind, and comes in later, is not shown", async () => {
  const world = await twoNames();
  observeNode(world.context, saved("a", "three", "3", "2", "1"));
  observeNode(world.context, saved("b", "two", "2", "1"));
  expect(shown(world, "a", "b")).toEqual(["0 three", "0 three"]);
  expect(rowOf(world, "b").base?.hash).toBe("two");
});

test("content that comes back is a save of its own: what was there in between is behind", async () => {
  const world = await twoNames();
  observeNode(world.context, saved("a", "one", "3", "2", "1"));
  observeNode(world.context, saved("b", "two", "2", "1"));
  expect(shown(world, "a", "b")).toEqual(["0 one", "0 one"]);
});

test("the same where the name comes in for the first time", async () => {
  const world = await twoNames();
  observeNode(world.context, linked("c", "one", ["3", "2", "1"]));
  observeNode(world.context, saved("b", "two", "2", "1"));
  expect(shown(world, "a", "b", "c")).toEqual(["0 one", "0 one", "0 one"]);
});

test("two that were written at the same time are two files, until somebody who knows both makes them one", async () => {
  const world = await twoNames();
  observeNode(world.context, linked("c", "one", ["1"]));
  observeNode(world.context, saved("a", "two", "2", "1"));
  observeNode(world.context, saved("b", "other", "3", "1"));
  expect(shown(world, "a", "b", "c")).toEqual(["0 two", "1 other", "0 two"]);
  observeNode(world.context, { ...saved("a", "other", "3", "1", "2"), head: "3rd", revision: 3 });
  expect(shown(world, "a", "b", "c")).toEqual(["0 other", "0 other", "0 other"]);
});

test("the same where what makes them one comes in by another name", async () => {
  const world = await twoNames();
  observeNode(world.context, saved("a", "two", "2", "1"));
  observeNode(world.context, saved("b", "other", "3", "1"));
  observeNode(world.context, linked("c", "other", ["3", "1", "2"]));
  expect(shown(world, "a", "b", "c")).toEqual(["0 other", "0 other", "0 other"]);
  observeNode(world.context, linked("d", "next", ["4", "3", "1", "2"]));
  expect(shown(world, "a", "b", "c", "d")).toEqual(["0 next", "0 next", "0 next", "0 next"]);
});

test("so they are where they come in for the first time, and whatever becomes of the one, the other is not sent it", async () => {
  const world = await makeWorld();
  observeNode(world.context, linked("a", "two", ["2", "1"]));
  observeNode(world.context, linked("b", "other", ["3", "1"]));
  expect(shown(world, "a", "b")).toEqual(["0 two", "1 other"]);
  writeHere(world, "a");
  expect(advance(world.context, rowOf(world, "b").id)).toBeUndefined();
  const [, ...before] = linkSent(world, "a", link("two", "2", "1"))?.saves ?? [];
  expect(before).toEqual(["2", "1"]);
});

test("a node that gets other content names the saves it had: whoever wrote this put it in the place of that", () => {
  const had = { group: "g", hash: "one", saves: ["5", "1"] };
  expect(linkOfContent("g", "x", ["9", "1"], had)).toEqual({ group: "g", hash: "x", saves: ["9", "5", "1"] });
  expect(linkOfContent("g", "x", ["9"], { group: "g", hash: "one" }).saves).toEqual(["9", ...ONE]);
  const long = Array.from({ length: 16 }, (_, at) => `${20 - at}`);
  expect(linkOfContent("g", "x", long, had).saves).toEqual(["20", "5", ...long.slice(1, 15)]);
  expect(linkOfContent("g", "x", ["9", "1"], { ...had, group: "other" }).saves).toEqual(["9", "1"]);
});

test("what was written here came in the place of all that led to what was there", async () => {
  const world = await twoNames();
  observeNode(world.context, saved("a", "one", "5", "1"));
  writeHere(world, "b");
  const [id] = savesOfContent(EMPTY, ["5"]);
  expect(linkSent(world, "a", link("one", "1"))?.saves).toEqual([id, "5", "1"]);
  expect(linkSent(world, "b", link("one", "1"))?.saves).toEqual([id, "1", "5"]);
});

test("a file written for long names the last saves only, and the same write is the same save everywhere", () => {
  let saves: readonly string[] = [];
  for (let at = 0; at < 40; at += 1) saves = savesOfContent(`${at}`, saves);
  expect(saves.length).toBe(16);
  expect(new Set(saves).size).toBe(16);
  expect(savesOfContent("x", saves)).toEqual(savesOfContent("x", saves));
  expect(savesOfContent("x", saves)[1]).toBe(saves[0]);
});
