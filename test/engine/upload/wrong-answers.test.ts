/** An answer to a write that is wrong does not last: what the node itself tells, read by its id, is the last word. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { send } from "../../../src/engine/upload/send.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type BytesWorld, withParts } from "../support/bytes-world.ts";
import { EMPTY, make, makeWorld, namesIn, nodeOf, rowOf, sendNext } from "../support/rows-world.ts";

const nextOf = (world: BytesWorld) => world.context.planner.advance(rowOf(world, "n").id)?.step;

/** File "a" was sent, and became node "n"; its answer told of that otherwise. */
async function sent(wrong: Partial<Node>) {
  const world = await makeWorld();
  const birth = sendNext(world, make(world, ROOT_INODE, "a"), "key");
  const right = nodeOf("n", { name: "a", head: "v1", contentHash: EMPTY, size: 0, lastKey: "key" });
  world.context.answers.acknowledge(birth, { ...right, ...wrong }, 1);
  return { world, right };
}

function save({ context, metadata }: Awaited<ReturnType<typeof makeWorld>>, hash: string): void {
  const inode = metadata.entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0);
  metadata.transaction(() => {
    metadata.inodes.update(inode, { content: "dirty", hash, size: 0 });
    context.queue.setInodeDirty(inode);
  });
}

test("a head that is none: what is saved next is sent on top of the one there is, and nothing is in conflict", async () => {
  const { world, right } = await sent({ head: "none" });
  save(world, "next");
  // As the gateway would refuse it, after which the node is read.
  world.context.observer.node(right, "id");
  expect([namesIn(world, ROOT_INODE), rowOf(world, "n").seen]).toEqual([["a"], null]);
  expect(nextOf(world)).toEqual({ do: "snapshot" });
  expect(rowOf(world, "n").base).toMatchObject({ head: "v1", hash: EMPTY });
});

test("only who is read by id corrects: a list may be old", async () => {
  const { world, right } = await sent({ head: "none" });
  world.context.observer.node(right);
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
  expect(world.metadata.rereads.due(rowTime(world.clock.wallClock()), 10).map(({ nodeId }) => nodeId)).toContain("n");
  world.context.observer.node(right, "id");
  expect([namesIn(world, ROOT_INODE), nextOf(world)]).toEqual([["a"], undefined]);
  expect(rowOf(world, "n")).toMatchObject({ seen: null, base: { parent: "root", name: "a", head: "v1", hash: EMPTY } });
  // Else what is fetched of it would be taken for damaged.
  expect(world.metadata.inodes.get(world.metadata.entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0))?.hash).toBe(
    EMPTY,
  );
});

test("no node changes its kind: neither a list nor a refusal that says so is heard", async () => {
  const world = await makeWorld();
  world.context.observer.node(nodeOf("f", { kind: "folder" }));
  const file = nodeOf("f", { revision: 2 });
  world.context.observer.node(file);
  world.context.observer.node(file, "id");
  expect(rowOf(world, "f")).toMatchObject({ kind: "folder", seen: null, base: { head: null, revision: 1 } });
  const inode = world.metadata.entries.find(ROOT_INODE, "f")?.inode ?? inodeId(0);
  world.metadata.transaction(() => {
    world.metadata.inodes.update(inode, { attributes: { mode: 0o700 } });
    world.context.queue.setInodeDirty(inode);
  });
  const attempt = sendNext(world, rowOf(world, "f"), "key");
  world.context.answers.refused(attempt, new RemoteError("changed", "changed", { node: { ...file, lastKey: "key" } }));
  expect(rowOf(world, "f").base).toMatchObject({ head: null, revision: 1 });
  expect(world.metadata.inodes.get(inode)?.kind).toBe("folder");
});

test("answered of another kind, a request has no answer: it is sent again, and the folder stays one", async () => {
  const world = await makeWorld();
  const { context, metadata } = world;
  context.observer.node(nodeOf("f", { kind: "folder" }));
  const inode = metadata.entries.find(ROOT_INODE, "f")?.inode ?? inodeId(0);
  metadata.transaction(() => {
    metadata.inodes.update(inode, { attributes: { mode: 0o700 } });
    context.queue.setInodeDirty(inode);
  });
  const attempt = sendNext(world, rowOf(world, "f"), "key");
  const told = { ...nodeOf("f", { revision: 2, lastKey: "key", attributes: { mode: 0o700 } }), position: 1 };
  const client = { ...context.client, patchNode: async () => told };
  const watcher = { turn: async () => true, progress: () => {}, over: () => {} };
  await send(withParts(context, { client }), attempt, new AbortController().signal, watcher);
  expect(metadata.attempts.openOf(attempt.node)).toMatchObject({ key: "key", tries: 1 });
  expect([metadata.inodes.get(inode)?.kind, rowOf(world, "f").base?.head]).toEqual(["folder", null]);
});
