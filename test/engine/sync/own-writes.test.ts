/** A request that was given up arrives on top of what somebody else has done: only what it asked for is ours. */
import { expect, test } from "vitest";
import { inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { EMPTY, makeWorld, namesIn, nodeOf, rowOf, sendNext } from "../support/rows-world.ts";

/** Content of "a" (node "n", revision 1) was being sent when it was given up for newer content. */
async function makeGivenUp() {
  const world = await makeWorld();
  const { context, metadata } = world;
  context.observer.node(nodeOf("n", { name: "a" }));
  const entry = metadata.entries.find(ROOT_INODE, "a");
  const content = { content: "dirty", hash: EMPTY, size: 0 } as const;
  metadata.transaction(() => {
    metadata.inodes.update(entry?.inode ?? inodeId(0), content);
    context.queue.setInodeDirty(entry?.inode ?? inodeId(0));
  });
  const given = sendNext(world, rowOf(world, "n"), "ours");
  metadata.attempts.abandon(given.id, context.runtime.now());
  return { ...world, file: entry?.inode ?? inodeId(0) };
}

test("content that was given up arrives after somebody's move: it stays moved", async () => {
  const world = await makeGivenUp();
  const { context } = world;
  const change = { name: "theirs", revision: 3, head: "ours", contentHash: EMPTY, size: 0, lastKey: "ours" };
  context.observer.node(nodeOf("n", change));
  expect([namesIn(world, ROOT_INODE), context.planner.advance(rowOf(world, "n").id)?.step]).toEqual([
    ["theirs"],
    undefined,
  ]);
  expect(rowOf(world, "n").base).toMatchObject({ head: "ours", revision: 3 });
});

test.each([
  ["moved by somebody since", { revision: 3, name: "theirs" }, { head: "another", hash: EMPTY }],
  ["written by somebody, who changed nothing else", { revision: 2 }, { head: "head of n", hash: "three" }],
  ["written by somebody without a key", { revision: 2, lastKey: null }, { head: "head of n", hash: "three" }],
])("the bytes that were given up, %s", async (_, change, base) => {
  const world = await makeGivenUp();
  world.metadata.inodes.update(world.file, { hash: null, size: 5 });
  const bytes = { head: "another", contentHash: EMPTY, size: 0, lastKey: "theirs" };
  world.context.observer.node(nodeOf("n", { ...bytes, ...change }));
  expect(rowOf(world, "n").base).toMatchObject(base);
});

test("the bytes that were given up, written by somebody on top of another head than they were to replace", async () => {
  const world = await makeGivenUp();
  const { metadata } = world;
  metadata.inodes.update(world.file, { hash: null, size: 5 });
  const row = rowOf(world, "n");
  if (row.base === null) throw new Error("no base");
  metadata.nodes.update(row.id, { base: { ...row.base, revision: 2, head: "second", hash: "second" } });
  world.context.observer.node(
    nodeOf("n", { revision: 4, head: "another", contentHash: EMPTY, size: 0, lastKey: "theirs" }),
  );
  expect(rowOf(world, "n").base).toMatchObject({ head: "second", revision: 2 });
});
