/** A program saves the bytes the gateway has already: they are not sent again, nor kept as if nobody else had them. */
import { expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import { inodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { begin } from "./support/one-world.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";

const WAYS = (["save", "replace", "recreate"] as const).flatMap((how) =>
  ([[], ["hashes"], ["uploadKeys", "folderKeys", "changeKeys", "lastKey"]] as Feature[][]).flatMap((lacks) =>
    [0, 40].map((size) => ({
      how,
      size,
      lacks,
      what: lacks.length === 0 ? "a whole gateway" : `a gateway without ${lacks[0]}`,
    })),
  ),
);

test.each(WAYS)(
  "$how $size bytes as they were, at $what: clean, with no version more",
  async ({ how, size, lacks }) => {
    const it = await begin(true, {}, { lacks });
    const write = (by: "save" | typeof how) =>
      it.world.run(runProgram(it.calls(), { do: by, path: "a", size }, "alike"));
    await write("save");
    await it.drain();
    const { outside, workspace } = it.world;
    const node = async () => (await it.world.run(outside.listFolder(workspace.root))).items[0];
    const before = await node();
    await write(how);
    await it.drain();
    const inode = it.metadata().inodes.get(it.metadata().entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0));
    expect(inode).toMatchObject({ content: "clean", originNode: before?.id, originVersion: before?.head });
    expect((await node())?.head).toBe(before?.head);
    await it.save("a", "other");
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(bytesOf("other", 40).toString("latin1"));
  },
);

test.each([0, 40])("%i bytes, made elsewhere at the same moment: one file, clean", async (size) => {
  const it = await begin(true);
  await it.drain();
  const { outside, workspace } = it.world;
  it.world.setLag({ path: 3_000, journal: 3_000, id: 0 });
  const theirs = await it.world.run(outside.upload(workspace.root, "a", sourceOf(bytesOf("alike", size))));
  await it.world.run(runProgram(it.calls(), { do: "save", path: "a", size }, "alike"));
  await it.world.clock.advance(10_000);
  await it.drain();
  const inode = it.metadata().inodes.get(it.metadata().entries.find(ROOT_INODE, "a")?.inode ?? inodeId(0));
  expect(inode).toMatchObject({ content: "clean", originNode: theirs.id, originVersion: theirs.head });
  await it.ends(["a"]);
});
