/** Who has a file open for writing, as the rows say it; and transactions that change nothing. */
import { expect, test } from "vitest";
import { openDatabase } from "../../src/metadata/database.ts";
import { inodeId, nodeRowId } from "../../src/metadata/ids.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { recordedRows } from "../support/recorded-rows.ts";

function opened() {
  const database = openDatabase(":memory:");
  const statements: string[] = [];
  const rows = recordedRows(database, (sql) => statements.push(sql));
  const metadata = createMetadata<unknown>(rows, (value) => value);
  const noted = () => database.prepare("SELECT inode FROM writing ORDER BY inode").pluck().all();
  const change = (value: string) => metadata.transaction(() => metadata.settings.set("written", value));
  return { metadata, statements, noted, change };
}

test("a writer is noted at once, its end with the next change that is committed", () => {
  const { metadata, noted, change } = opened();
  const { writers } = metadata;
  metadata.transaction(() => writers.begin(inodeId(7)));
  writers.begin(inodeId(8));
  expect(noted()).toEqual([7, 8]);
  writers.end(inodeId(7));
  metadata.transaction(() => metadata.settings.get("written"));
  expect(noted()).toEqual([7, 8]);
  expect(() =>
    metadata.transaction(() => {
      metadata.settings.set("written", "1");
      throw new Error("undone");
    }),
  ).toThrow("undone");
  expect(noted()).toEqual([7, 8]);
  change("2");
  expect(noted()).toEqual([8]);
});

test("one that comes again before the end of the last was noted stays noted", () => {
  const { metadata, noted, change } = opened();
  const { writers } = metadata;
  writers.begin(inodeId(7));
  writers.end(inodeId(7));
  metadata.transaction(() => writers.begin(inodeId(7)));
  change("1");
  expect(noted()).toEqual([7]);
  writers.end(inodeId(7));
  change("2");
  expect(noted()).toEqual([]);
  // … and after it was.
  writers.begin(inodeId(7));
  expect(noted()).toEqual([7]);
  writers.endAll();
  change("3");
  expect(noted()).toEqual([]);
});

test("a writer whose transaction is undone is not taken for one that is noted", () => {
  const { metadata, noted } = opened();
  expect(() =>
    metadata.transaction(() => {
      metadata.writers.begin(inodeId(7));
      throw new Error("undone");
    }),
  ).toThrow("undone");
  metadata.writers.begin(inodeId(7));
  expect(noted()).toEqual([7]);
});

test("a transaction begins with its first change", () => {
  const { metadata, statements } = opened();
  statements.length = 0;
  metadata.transaction(() => metadata.transaction(() => metadata.nodes.get(nodeRowId(1))));
  expect(statements.filter((sql) => /BEGIN|COMMIT/.test(sql))).toEqual([]);
  metadata.transaction(() => {
    metadata.nodes.get(nodeRowId(2));
    metadata.part(() => metadata.settings.set("cursor", "1"));
  });
  expect(statements.filter((sql) => /BEGIN|COMMIT/.test(sql))).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
});

test("parts are kept apart once one has failed, and only then", () => {
  const { metadata, statements } = opened();
  const add = (name: "cursor" | "indexed" | "written", isFailing: boolean) =>
    metadata.part(() => {
      metadata.settings.set(name, "1");
      if (isFailing) throw new Error(name);
      return name;
    });
  const run = (isFailing: boolean) => {
    statements.length = 0;
    const parts = metadata.transaction(() => [add("cursor", false), add("indexed", isFailing), add("written", false)]);
    return { parts, statements: statements.filter((sql) => /BEGIN|SAVEPOINT|RELEASE|ROLLBACK|COMMIT/.test(sql)) };
  };
  expect(run(false)).toEqual({
    parts: [{ value: "cursor" }, { value: "indexed" }, { value: "written" }],
    statements: ["BEGIN IMMEDIATE", "COMMIT"],
  });
  for (const key of ["cursor", "indexed", "written"] as const) metadata.settings.set(key, "0");
  const failing = run(true);
  expect(failing.parts).toEqual([{ value: "cursor" }, { error: new Error("indexed") }, { value: "written" }]);
  expect(failing.statements.slice(0, 4)).toEqual(["BEGIN IMMEDIATE", "ROLLBACK", "BEGIN IMMEDIATE", "SAVEPOINT part"]);
  expect([metadata.settings.get("cursor"), metadata.settings.get("indexed"), metadata.settings.get("written")]).toEqual(
    ["1", "0", "1"],
  );
  expect(run(false).statements).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
});
