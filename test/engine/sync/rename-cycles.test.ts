/** Who still needs a node that is to be deleted. */
import { expect, test } from "vitest";
import { referrersOf } from "../../../src/engine/sync/rename-cycles.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

test.each([
  { name: "with the same hash, nobody", hashes: ["same", "same"], needed: [] },
  { name: "with other hashes, the name its content is at now", hashes: ["one", "other"], needed: ["a"] },
  { name: "with hashes nobody knows, too: they are not the same", hashes: [null, null], needed: ["a"] },
] as const)("renamed over another file, its node is needed by: $name", async ({ hashes, needed }) => {
  const { context, addRemote } = await createBytesWorld();
  const { entries, nodes } = context.metadata;
  addRemote(Buffer.from("a"), { name: "a", hash: hashes[0] });
  addRemote(Buffer.from("b"), { name: "b", hash: hashes[1] });
  context.metadata.transaction(() => {
    const [source, target] = [entries.find(ROOT_INODE, "b"), entries.find(ROOT_INODE, "a")];
    if (source === undefined || target === undefined) throw new Error("no entries");
    context.names.replaceTarget(source, target);
  });
  const row = nodes.ofNodeId("b");
  expect(row && referrersOf(context, row).map(({ nodeId }) => nodeId)).toEqual(needed);
});
