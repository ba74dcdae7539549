/** What is to be read again, and what is known of deletions, as rows. */
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { createMetadata, type Metadata } from "../../src/metadata/metadata.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let metadata: Metadata<unknown>;
beforeEach(() => {
  metadata = createMetadata(openDatabase(":memory:"), (value) => value);
});

const due = (now: number) =>
  metadata.rereads.due(rowTime(now), 10).map(({ nodeId }) => [nodeId, metadata.rereads.missingSince(nodeId) ?? null]);

function first(now = 0) {
  const [reread] = metadata.rereads.due(rowTime(now), 1);
  if (reread === undefined) throw new Error("nothing is due");
  return reread;
}

test("what is asked for is due at once, in the order of asking, until it is done", () => {
  for (const id of ["b", "a", "b"]) metadata.rereads.add(id);
  expect(due(0)).toEqual([
    ["a", null],
    ["b", null],
  ]);
  metadata.rereads.done(first());
  expect(due(0)).toEqual([["b", null]]);
});

test("asked for again while it is being read, it is read again", () => {
  metadata.rereads.add("a");
  const underWay = first();
  metadata.rereads.add("a");
  metadata.rereads.done(underWay);
  expect(due(0)).toEqual([["a", null]]);
  metadata.rereads.done(first());
  expect(due(0)).toEqual([]);
});

test("since when an id answers 404 is kept when it is asked for again, and forgotten when it answers", () => {
  metadata.rereads.add("a");
  metadata.rereads.missing(first(), rowTime(100), rowTime(1_100));
  expect(due(1_099)).toEqual([]);
  expect(due(1_100)).toEqual([["a", 100]]);
  metadata.rereads.add("a");
  expect(due(0)).toEqual([["a", 100]]);
  metadata.rereads.found("a");
  expect(due(0)).toEqual([["a", null]]);
});

test("an answer of 404 does not put off what was asked for since", () => {
  metadata.rereads.add("a");
  const underWay = first();
  metadata.rereads.add("a");
  metadata.rereads.missing(underWay, rowTime(100), rowTime(9_000));
  expect(due(0)).toEqual([["a", 100]]);
});

test("of two deletions the later is remembered, of one who knows its position", () => {
  const { tombstones } = metadata;
  tombstones.add({ nodeId: "a", revision: 5, position: null });
  tombstones.add({ nodeId: "a", revision: 4, position: 40 });
  expect(tombstones.get("a")).toEqual({ nodeId: "a", revision: 5, position: null });
  tombstones.add({ nodeId: "a", revision: 5, position: 50 });
  tombstones.add({ nodeId: "a", revision: 5, position: null });
  expect(tombstones.get("a")).toEqual({ nodeId: "a", revision: 5, position: 50 });
  tombstones.add({ nodeId: "a", revision: 7, position: null });
  expect(tombstones.get("a")).toEqual({ nodeId: "a", revision: 7, position: null });
});

test("a deletion of an unknown position is remembered until its position is passed", () => {
  const { tombstones } = metadata;
  tombstones.add({ nodeId: "a", revision: 5, position: null });
  tombstones.add({ nodeId: "b", revision: 5, position: 50 });
  tombstones.forgetUpTo(49);
  expect(tombstones.get("b")).toBeDefined();
  tombstones.forgetUpTo(1_000_000);
  expect([tombstones.get("a")?.revision, tombstones.get("b")]).toEqual([5, undefined]);
  tombstones.add({ nodeId: "a", revision: 6, position: 1_000_001 });
  tombstones.forgetUpTo(1_000_001);
  expect(tombstones.get("a")).toBeUndefined();
});

test("rows of the schema before keep what they say", async () => {
  const path = join(await temporaryFolder(), "state.db");
  const before = openSqlite(path);
  for (const sql of MIGRATIONS.slice(0, 2)) before.exec(sql);
  before.pragma("user_version = 2");
  before.exec("INSERT INTO tombstone VALUES ('a', 5, 50), ('b', 1, 2)");
  before.close();
  const database = openDatabase(path);
  const { tombstones, rereads } = createMetadata(database, (value) => value);
  expect(tombstones.get("a")).toEqual({ nodeId: "a", revision: 5, position: 50 });
  tombstones.add({ nodeId: "b", revision: 2, position: null });
  expect(tombstones.get("b")).toEqual({ nodeId: "b", revision: 2, position: null });
  rereads.add("a");
  expect(rereads.countKnown()).toBe(0);
  database.close();
});
