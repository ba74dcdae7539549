/** Folders in the order in which programs last used them: those with names in them, found by an index. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { inodeId, nodeRowId } from "../../src/metadata/ids.ts";
import type { UsePlace } from "../../src/metadata/inodes.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { unborn } from "../../src/metadata/nodes.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { NEW_INODE } from "../support/new-inode.ts";
import { recordedRows } from "../support/recorded-rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function begin() {
  let counts = 0;
  const database = recordedRows(openDatabase(":memory:"), (sql) => {
    if (/count\(\*\) AS count FROM entry$/.test(sql)) counts += 1;
  });
  const metadata = createMetadata<{ parent: string; name: string }>(database, (value) => value as never);
  const { inodes, entries } = metadata;
  const folder = () => inodes.create({ ...NEW_INODE, kind: "folder" }).id;
  const root = folder();
  metadata.createRootEntry();
  return { metadata, counted: () => counts, inodes, entries, folder, root };
}

type World = Pick<ReturnType<typeof begin>, "inodes">;

/** All of them that were not used after `until`, in order. */
function inOrder({ inodes }: World, until: number): number[] {
  const found: number[] = [];
  for (let at: UsePlace | undefined; ; ) {
    const next = inodes.leastUsedAfter(at, rowTime(until));
    if (next === undefined) return found;
    found.push(Number(next.id));
    at = { used: next.used ?? "never", id: next.id };
  }
}

test("a folder has a place in the order once there is a name in it, moved there or made there", () => {
  const world = begin();
  const { inodes, entries, folder, root } = world;
  const [a, b] = [folder(), folder()];
  expect(inOrder(world, 9)).toEqual([]);
  entries.create(root, "a", a);
  const moved = entries.create(root, "b", b);
  expect(inOrder(world, 9)).toEqual([1]);
  entries.create(a, "file", inodes.create({ ...NEW_INODE, kind: "file" }).id);
  expect(inOrder(world, 9)).toEqual([2, 1]);
  inodes.update(a, { used: null });
  entries.move(moved.id, a, "b");
  expect(inodes.get(a)?.used).toBe("never");
});

test("the least recently used come first, of equals the newest; none that was used later", () => {
  const world = begin();
  const { inodes, folder } = world;
  const all = [0, 50, 20, 50, 0, 70, 20].map((used) => inodes.update(folder(), { used: rowTime(used) }).id);
  expect(inOrder(world, 60)).toEqual([all[4], all[0], all[6], all[2], all[3], all[1]]);
  expect(inOrder(world, 20)).toEqual([all[4], all[0], all[6], all[2]]);
  expect(inOrder(world, -1)).toEqual([]);
});

test("row time that begins anew leaves no use in time to come", () => {
  const { metadata, inodes, folder } = begin();
  const [late, never, none] = [folder(), folder(), folder()];
  inodes.update(late, { used: rowTime(900) });
  inodes.update(never, { used: "never" });
  metadata.times.notAfter(rowTime(100));
  expect([late, never, none].map((id) => inodes.get(id)?.used)).toEqual([100, "never", null]);
});

test("the number of names is counted once, and kept through changes and what undoes them", () => {
  const { metadata, counted, entries, folder, root } = begin();
  expect(entries.count()).toBe(1);
  const a = entries.create(root, "a", folder());
  let within = 0;
  expect([entries.count(), counted()]).toEqual([2, 1]);
  expect(() =>
    metadata.transaction(() => {
      entries.create(root, "b", folder());
      entries.remove(a.id);
      entries.create(root, "c", folder());
      within = entries.count();
      throw new Error("undone");
    }),
  ).toThrow("undone");
  expect([within, counted(), entries.count()]).toEqual([3, 1, 2]);
});

test("requests that concern a node: its own, in it, of its content, with it; given up ones too where they may arrive", () => {
  const { metadata } = begin();
  const { attempts, nodes } = metadata;
  const add = (request: object) => {
    const { id } = nodes.create({ ...unborn(inodeId(0) as never, "file", rowTime(1), rowTime(1)), entry: null });
    const attempt = attempts.create({
      ...{ node: id, key: `${id}`, request: request as never, snapshot: null, priority: "small" },
      ...{ nextAt: rowTime(1), createdAt: rowTime(1) },
    });
    return { row: id, ...attempt };
  };
  const other = nodeRowId(0);
  const own = add({});
  expect(attempts.isAnyConcerning(own.row, "n")).toBe(true);
  for (const request of [{ parent: "n", name: "x" }, { copyOf: "n" }, { with: "n", parent: "p", name: "y" }]) {
    expect(attempts.isAnyConcerning(other, "n")).toBe(false);
    const { row } = add(request);
    expect(attempts.isAnyConcerning(other, "n")).toBe(true);
    attempts.removeAllOf(row);
  }
  const { row } = add({ parent: "n", name: "x" });
  const open = attempts.openOf(row);
  if (open !== undefined) attempts.abandon(open.id, rowTime(2));
  expect(attempts.isAnyConcerning(other, "n")).toBe(true);
});

test("rows of the schema before: folders with names in them count as never used", async () => {
  const path = join(await temporaryFolder(), "state.db");
  const before = openSqlite(path);
  const length = MIGRATIONS.findIndex((sql) => sql.includes("ADD COLUMN used"));
  for (const sql of MIGRATIONS.slice(0, length)) before.exec(sql);
  before.pragma(`user_version = ${length}`);
  before.exec(`INSERT INTO inode (id, lineage, kind, attributes, size, content, atime, ctime, listed)
    VALUES (1, 1, 'folder', '{}', 0, 'clean', '0', '0', 5), (2, 2, 'folder', '{}', 0, 'clean', '0', '0', 5),
      (3, 3, 'folder', '{}', 0, 'clean', '0', '0', NULL), (4, 4, 'file', '{}', 0, 'clean', '0', '0', NULL)`);
  before.exec(`INSERT INTO entry (id, parent, name, inode)
    VALUES (3, 1, '', 1), (16, 1, 'a', 2), (17, 1, 'b', 3), (18, 3, 'file', 4)`);
  before.close();
  const database = openDatabase(path);
  const { inodes } = createMetadata(database, (value) => value);
  expect([1, 2, 3, 4].map((id) => inodes.get(inodeId(id))?.used)).toEqual(["never", null, "never", null]);
  expect(inOrder({ inodes }, 9)).toEqual([3, 1]);
  database.close();
});
