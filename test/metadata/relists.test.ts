/** Which known folders are to be listed again, as rows. */
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { type Connection, openDatabase } from "../../src/metadata/database.ts";
import { type InodeId, inodeId } from "../../src/metadata/ids.ts";
import { createMetadata, type Metadata } from "../../src/metadata/metadata.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let metadata: Metadata<unknown>;
beforeEach(() => {
  metadata = createMetadata(openDatabase(":memory:"), (value) => value);
});

function folder({ inodes }: Metadata<unknown>, listed: number | null): InodeId {
  const about = { attributes: {}, size: 0, hash: null, originNode: null, originVersion: null, atime: "0", ctime: "0" };
  return inodes.create({ kind: "folder", content: "clean", ...about, listed }).id;
}

function next({ relists }: Metadata<unknown>, now = 0) {
  const relist = relists.next(rowTime(now));
  if (relist === undefined) throw new Error("nothing is due");
  return relist;
}

test("what is asked for is due at once, in the order of asking, until it is done", () => {
  const [a, b] = [folder(metadata, 0), folder(metadata, 0)];
  for (const inode of [b, a, b]) metadata.relists.add(inode);
  expect([next(metadata).folder, metadata.relists.count()]).toEqual([a, 2]);
  metadata.relists.done(next(metadata));
  expect(next(metadata).folder).toBe(b);
  metadata.relists.done(next(metadata));
  expect([metadata.relists.next(rowTime(0)), metadata.relists.count()]).toEqual([undefined, 0]);
});

test("asked for again while its list is under way, it is listed again", () => {
  const a = folder(metadata, 0);
  metadata.relists.add(a);
  const underWay = next(metadata);
  metadata.relists.add(a);
  metadata.relists.done(underWay);
  metadata.relists.postpone(underWay, rowTime(10_000));
  expect(next(metadata).folder).toBe(a);
});

test("what failed waits, also by a clock that begins anew, and a folder that is gone is not asked for", () => {
  const [a, b] = [folder(metadata, 0), folder(metadata, 0)];
  metadata.relists.add(a);
  metadata.relists.add(b);
  metadata.relists.postpone(next(metadata), rowTime(10_000));
  expect([next(metadata, 9_999).folder, next(metadata, 10_000).folder]).toEqual([b, b]);
  metadata.inodes.remove(b);
  expect(metadata.relists.next(rowTime(9_999))).toBeUndefined();
  metadata.times.notAfter(rowTime(500));
  expect(next(metadata, 500).folder).toBe(a);
});

test("all folders of which anything is known are asked for at once", () => {
  const [root, known, partly, unknown] = [null, 7, null, null].map((listed) => folder(metadata, listed));
  for (const [parent, inode] of [
    [root, known],
    [root, partly],
    [partly, unknown],
  ]) {
    metadata.entries.create(parent ?? inodeId(0), `${inode}`, inode ?? inodeId(0));
  }
  metadata.relists.addAll();
  const asked: number[] = [];
  for (; metadata.relists.count() > 0; metadata.relists.done(next(metadata))) asked.push(next(metadata).folder);
  expect(asked).toEqual([root, known, partly]);
});

test.each([
  ["of a mount that was looking at all folders again, those are asked for", "3", 1],
  ["of a mount that was not, none is", "", 0],
])("rows of the schema before: %s", async (_, reached, count) => {
  const path = join(await temporaryFolder(), "state.db");
  const before: Connection = openSqlite(path);
  const length = MIGRATIONS.findIndex((sql) => sql.includes("CREATE TABLE relist"));
  for (const sql of MIGRATIONS.slice(0, length)) before.exec(sql);
  before.pragma(`user_version = ${length}`);
  before.exec(`INSERT INTO setting (key, value) VALUES ('relist', '${reached}');
    INSERT INTO inode (id, kind, lineage, attributes, size, content, changes, atime, ctime, listed)
      VALUES (77, 'folder', 77, '{}', 0, 'clean', 0, '0', '0', 5)`);
  before.close();
  const database = openDatabase(path);
  const after = createMetadata(database, (value) => value);
  expect(after.relists.count()).toBe(count);
  expect(database.prepare("SELECT count(*) AS count FROM setting WHERE key = 'relist'").get()).toEqual({ count: 0 });
  database.close();
});
