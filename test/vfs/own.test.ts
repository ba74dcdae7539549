/** A request that was given up arrives on top of what somebody else has done: only what it asked for is ours. */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { advance } from "../../src/vfs/advance.ts";
import { markInode } from "../../src/vfs/changes.ts";
import { observeNode } from "../../src/vfs/observe.ts";
import { EMPTY, makeWorld, namesIn, nodeOf, rowOf, sendNext } from "../support/rows-world.ts";

test("content that was given up arrives after somebody's move: it stays moved", async () => {
  const world = await makeWorld();
  const { context, metadata } = world;
  observeNode(context, nodeOf("n", { name: "a" }));
  const entry = metadata.entries.find(ROOT_INODE, "a");
  const content = { content: "dirty", hash: EMPTY, size: 0 } as const;
  metadata.transaction(() => {
    metadata.inodes.update(entry?.inode ?? 0, content);
    markInode(context, entry?.inode ?? 0);
  });
  const given = sendNext(world, rowOf(world, "n"), "ours");
  metadata.attempts.abandon(given.id, context.runtime.now());
  const change = { name: "theirs", revision: 3, head: "ours", contentHash: EMPTY, size: 0, lastKey: "ours" };
  observeNode(context, nodeOf("n", change));
  expect([namesIn(world, ROOT_INODE), advance(context, rowOf(world, "n").id)?.step]).toEqual([["theirs"], undefined]);
  expect(rowOf(world, "n").base).toMatchObject({ head: "ours", revision: 3 });
});
