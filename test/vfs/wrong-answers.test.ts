/** An answer to a write that is wrong does not last: what the node itself tells, read by its id, is the last word. */
import { expect, test } from "vitest";
import type { Node } from "../../src/contract/resources.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { advance } from "../../src/vfs/advance.ts";
import { markInode } from "../../src/vfs/changes.ts";
import { observeNode } from "../../src/vfs/observe.ts";
import { acknowledge } from "../../src/vfs/settle.ts";
import type { BytesWorld } from "../support/bytes-world.ts";
import { EMPTY, make, makeWorld, namesIn, nodeOf, rowOf, sendNext } from "../support/rows-world.ts";

const nextOf = (world: BytesWorld) => advance(world.context, rowOf(world, "n").id)?.step;

/** File "a" was sent, and became node "n"; its answer told of that otherwise. */
async function sent(wrong: Partial<Node>) {
  const world = await makeWorld();
  const birth = sendNext(world, make(world, ROOT_INODE, "a"), "key");
  const right = nodeOf("n", { name: "a", head: "v1", contentHash: EMPTY, size: 0, lastKey: "key" });
  acknowledge(world.context, birth, { ...right, ...wrong }, 1);
  return { world, right };
}

function save({ context, metadata }: Awaited<ReturnType<typeof makeWorld>>, hash: string): void {
  const inode = metadata.entries.find(ROOT_INODE, "a")?.inode ?? 0;
  metadata.transaction(() => {
    metadata.inodes.update(inode, { content: "dirty", hash, size: 0 });
    markInode(context, inode);
  });
}

test("a head that is none: what is saved next is sent on top of the one there is, and nothing is in conflict", async () => {
  const { world, right } = await sent({ head: "none" });
  save(world, "next");
  // As the gateway would refuse it, after which the node is read.
  observeNode(world.context, right, "id");
  expect([namesIn(world, ROOT_INODE), rowOf(world, "n").seen]).toEqual([["a"], null]);
  expect(nextOf(world)).toEqual({ do: "cut" });
  expect(rowOf(world, "n").base).toMatchObject({ head: "v1", hash: EMPTY });
});

test("only who is read by id corrects: a list may be old", async () => {
  const { world, right } = await sent({ head: "none" });
  observeNode(world.context, right);
  expect(rowOf(world, "n").base).toMatchObject({ head: "none" });
});

test.each([
  ["a name", { name: "b" }],
  ["a folder", { parentId: "nowhere" }],
  ["a hash", { contentHash: "other" }],
  ["no content", { head: null, contentHash: null }],
  ["attributes", { attributes: { mode: 0o600 } }],
])("%s, wrong in the answer: the node is read, and is as it was sent", async (_, wrong) => {
  const { world, right } = await sent(wrong);
  expect(world.metadata.rereads.due(world.clock.wallClock(), 10).map(({ nodeId }) => nodeId)).toContain("n");
  observeNode(world.context, right, "id");
  expect([namesIn(world, ROOT_INODE), nextOf(world)]).toEqual([["a"], undefined]);
  expect(rowOf(world, "n")).toMatchObject({ seen: null, base: { parent: "root", name: "a", head: "v1", hash: EMPTY } });
  // Else what is fetched of it would be taken for damaged.
  expect(world.metadata.inodes.get(world.metadata.entries.find(ROOT_INODE, "a")?.inode ?? 0)?.hash).toBe(EMPTY);
});
