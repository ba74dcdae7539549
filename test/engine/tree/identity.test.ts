/** Which node a name carries: what is remembered for that, and for how long. */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

test("of a place that file after file was moved away from, only the last few are remembered", async () => {
  const { context, clock, addRemote } = await createBytesWorld();
  const { entries, nodes } = context.metadata;
  const move = (from: string, to: string) =>
    context.metadata.transaction(() => {
      const entry = entries.find(ROOT_INODE, from);
      if (entry === undefined) throw new Error(`no ${from}`);
      context.names.move(entry, ROOT_INODE, to);
    });
  for (const name of ["a", "b", "c", "d", "e"]) {
    addRemote(Buffer.from(name), { name });
    move(name, "new");
    move("new", `${name} done`);
    await clock.advance(60_000);
  }
  const left = () => nodes.thatLeft(ROOT_INODE, "new").map(({ nodeId }) => nodeId);
  expect(left()).toEqual(["e"]);
  // Moved away a moment ago, its node is still the name's.
  addRemote(Buffer.from("f"), { name: "f" });
  move("f", "new");
  move("new", "f done");
  const { id } = addRemote(Buffer.from("g"), { name: "g" });
  context.metadata.transaction(() => context.names.add(ROOT_INODE, "new", id, "file"));
  const entry = entries.find(ROOT_INODE, "new");
  expect(entry && nodes.ofEntry(entry.id)?.nodeId).toBe("f");
});
