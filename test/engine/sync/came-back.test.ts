/** A node leaves its name to another one, and comes back to it before that is carried out here. */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { makeWorld, nodeOf, sendNext } from "../support/rows-world.ts";

/** The node `a` has content that is being sent. Elsewhere it is deleted, and `b` is made at its name. */
async function begin() {
  const world = await makeWorld();
  const { metadata } = world;
  const { observer, answers, queue } = world.context;
  const a = nodeOf("a", { name: "name" });
  observer.node(a);
  const entry = metadata.entries.find(ROOT_INODE, "name") ?? missing();
  const row = metadata.nodes.ofEntry(entry.id) ?? missing();
  const { id, changes, kernelNodeId } = metadata.inodes.update(entry.inode, { content: "dirty", hash: "another" });
  metadata.transaction(() => queue.setNodeDirty(row));
  const taken = { hash: "another", size: 0, mtime: "0.000000000", synced: 1, boot: "" };
  metadata.snapshots.create({ ...taken, inode: id, changes, kernelNodeId });
  const attempt = sendNext(world, row, "key");
  observer.deletion("a", 2, 6);
  observer.node(nodeOf("b", { name: "name" }), "id");
  expect(metadata.entries.get(entry.id)?.name).toBe(`/${entry.id}`);
  return {
    name: () => metadata.entries.get(entry.id)?.name,
    row: () => metadata.nodes.get(row.id),
    look: () => world.context.planner.advance(row.id),
    /** `a` is restored, `b` is deleted, and the answer to the request comes. */
    news: {
      back: () => observer.node({ ...a, revision: 3 }, "id"),
      gone: () => observer.deletion("b", 2, 8),
      answer: () => answers.acknowledge(attempt, { ...a, head: "new", contentHash: "another", revision: 4 }, 9),
    },
  };
}

function missing(): never {
  throw new Error("not there");
}

test("its entry has its name again, in whichever order that is heard", async () => {
  const orders = [
    ["back", "gone", "answer"],
    ["back", "answer", "gone"],
    ["gone", "back", "answer"],
  ] as const;
  for (const order of orders) {
    const it = await begin();
    for (const what of order) {
      it.news[what]();
      // As the loop does.
      if (it.row()?.due !== null) it.look();
    }
    expect([order, it.name(), it.row()?.nodeId, it.row()?.due]).toEqual([order, "name", "a", null]);
  }
});
