/** What the kernel forgot goes a little later, many with one commit, unless the kernel was told of it again. */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { create } from "../../src/vfs/create.ts";
import { dropForgotten, forget, GATHER_MS } from "../../src/vfs/forgotten.ts";
import { lookup } from "../../src/vfs/lookup.ts";
import { unlink } from "../../src/vfs/remove.ts";
import { CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";
import { recordedRows } from "../support/recorded-rows.ts";

const WRITING = { read: false, write: true, append: false, truncate: false, exclusive: true };

async function worldOfFiles() {
  const told = { commits: 0, isBroken: false };
  const rows: Parameters<typeof createBytesWorld>[1] = {
    rows: (database) =>
      recordedRows(database, (sql) => {
        if (sql.startsWith("BEGIN") && told.isBroken) throw new Error("the rows cannot be changed");
        if (sql === "COMMIT") told.commits += 1;
      }),
  };
  const world = await createBytesWorld({}, rows);
  const { context } = world;
  context.metadata.inodes.update(ROOT_INODE, { listed: 0 });
  const root = context.metadata.inodes.get(ROOT_INODE)?.lineage ?? 0;
  const made = async (name: string) => {
    const { handle, lineage } = await create(context, CALLER, root, name, 0o644, WRITING);
    await world.write(handle, 0, pattern(10));
    await world.close(handle);
    return lineage;
  };
  const removed = async (name: string) => {
    const lineage = await made(name);
    await unlink(context, CALLER, root, name);
    return lineage;
  };
  const isThere = (lineage: number) => context.metadata.inodes.ofLineage(lineage) !== undefined;
  return { world, context, root, told, made, removed, isThere };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `file-${index}`);

test("files that were removed one after the other go with one commit", async () => {
  const { world, context, told, removed, isThere } = await worldOfFiles();
  const lineages: number[] = [];
  for (const name of names(20)) lineages.push(await removed(name));
  const before = told.commits;
  for (const lineage of lineages) forget(context, [{ lineage }]);
  expect(lineages.every(isThere)).toBe(true);
  await world.clock.advance(GATHER_MS);
  expect(lineages.some(isThere)).toBe(false);
  expect(told.commits - before).toBe(1);
});

test("of very many each commit takes some, and none waits for the next word", async () => {
  const { world, context, removed, isThere } = await worldOfFiles();
  const lineages: number[] = [];
  for (const name of names(100)) lineages.push(await removed(name));
  forget(
    context,
    lineages.map((lineage) => ({ lineage })),
  );
  await world.clock.advance(GATHER_MS);
  await world.clock.advance(1);
  expect(lineages.some(isThere)).toBe(false);
});

test("what has a name, and what the kernel was told of again, stays", async () => {
  const { world, context, root, made, isThere } = await worldOfFiles();
  const { metadata } = context;
  const [named, again] = [await made("named"), await made("again")];
  const inode = metadata.inodes.ofLineage(again);
  if (inode === undefined) throw new Error("it is not there");
  await unlink(context, CALLER, root, "again");
  forget(context, [{ lineage: named }, { lineage: again }]);
  // Somebody elsewhere kept it: it comes back, is looked up, and is removed once more, all of that at once.
  metadata.entries.create(ROOT_INODE, "back", inode.id);
  expect(await lookup(context, CALLER, root, "back")).toMatchObject({ lineage: again });
  await unlink(context, CALLER, root, "back");
  await world.clock.advance(GATHER_MS);
  expect([isThere(named), isThere(again)]).toEqual([true, true]);
  forget(context, [{ lineage: again }]);
  await world.clock.advance(GATHER_MS);
  expect(isThere(again)).toBe(false);
});

test("what the rows do not take is kept until they do", async () => {
  const { world, context, told, removed, isThere } = await worldOfFiles();
  const lineage = await removed("a");
  told.isBroken = true;
  forget(context, [{ lineage }]);
  await world.clock.advance(GATHER_MS);
  expect([isThere(lineage), world.complaints.length]).toEqual([true, 1]);
  told.isBroken = false;
  dropForgotten(context);
  expect(isThere(lineage)).toBe(false);
});
