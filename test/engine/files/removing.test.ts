/** What it costs that a file goes whose attributes were shown a moment ago: statements on rows, and looks at the clock. */
import { expect, test } from "vitest";
import { FORGET_GATHER_MS } from "../../../src/engine/files/on-forget.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { type Connection, forgetRead } from "../../../src/metadata/database.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { recordedRows } from "../../support/recorded-rows.ts";
import { CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";

const FILES = ["a", "b", "c"];

async function worldOfFiles() {
  const told: { database?: Connection; statements: string[] } = { statements: [] };
  const world = await createBytesWorld(
    {},
    {
      rows(database) {
        told.database = recordedRows(database, (sql) => told.statements.push(sql.replaceAll(/\s+/g, " ")));
        return told.database;
      },
    },
  );
  const { context } = world;
  context.metadata.inodes.update(ROOT_INODE, { listed: 0 });
  const root = world.inode(ROOT_INODE).kernelNodeId;
  const files = FILES.map((name) => world.addRemote(pattern(10), { name, attributes: { mtime: "1.000000000" } }));
  // How many statements of the kind the work took.
  const count = async (work: () => Promise<unknown>, kind: RegExp) => {
    told.statements = [];
    await work();
    return told.statements.filter((sql) => kind.test(sql)).length;
  };
  const forgetRows = () => told.database !== undefined && forgetRead(told.database);
  return { world, context, root, files, count, forgetRows };
}

test.each([
  ["its node is read", /^SELECT .* FROM node /, FILES.length],
  ["its node is written", /^UPDATE node /, FILES.length],
  ["its name is read", /^SELECT .* FROM entry /, FILES.length],
])("of a file that is removed %s once", async (_, kind, expected) => {
  const { world, context, root, files, count, forgetRows } = await worldOfFiles();
  forgetRows();
  for (const file of files) await world.stat(file.id);
  await world.stat(ROOT_INODE);
  const removeAll = async () => {
    for (const name of FILES) await createFileSystem(context).unlink(CALLER, root, name);
    context.orphans.forgotten(files);
    await world.clock.advance(FORGET_GATHER_MS);
  };
  expect(await count(removeAll, kind)).toBe(expected);
  expect(files.map(({ kernelNodeId }) => context.metadata.inodes.ofKernelNodeId(kernelNodeId))).toEqual(
    files.map(() => undefined),
  );
});

test("of files that go with one commit none makes the next be looked for again", async () => {
  const { world, context, root, files, count, forgetRows } = await worldOfFiles();
  for (const name of FILES) await createFileSystem(context).unlink(CALLER, root, name);
  forgetRows();
  const goAll = async () => {
    context.orphans.forgotten(files);
    await world.clock.advance(FORGET_GATHER_MS);
  };
  expect(await count(goAll, /^SELECT inode FROM lineage /)).toBe(FILES.length);
});

test("a change of names has one time: of the folders, and of what has the name", async () => {
  const { world, context, root, files } = await worldOfFiles();
  const [first, second] = files;
  const timesOf = (...ids: (InodeId | undefined)[]) => new Set(ids.map((id) => world.inode(id).ctime)).size;
  await createFileSystem(context).unlink(CALLER, root, "a");
  expect(timesOf(ROOT_INODE, first?.id)).toBe(1);
  const flags = { exchange: false, noReplace: false };
  await createFileSystem(context).rename(CALLER, { parent: root, name: "b" }, { parent: root, name: "c" }, flags);
  expect(timesOf(ROOT_INODE, second?.id, files[2]?.id)).toBe(1);
  expect(timesOf(first?.id, second?.id)).toBe(2);
});
