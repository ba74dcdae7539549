/** What a statement gives: rows by the names of their columns, or one column alone. */
import { expect, test } from "vitest";
import { openDatabase, prepare, prepareColumn } from "../../src/metadata/database.ts";

test("a row has the names and the values of its columns, null among them, whatever they are called", () => {
  const database = openDatabase(":memory:");
  const select = 'SELECT 1 AS one, NULL AS none, \'a "b" \\ c\' AS text, 2.5 AS "a name" WHERE ? = 1';
  const statement = prepare(database, select);
  const row = { one: 1, none: null, text: 'a "b" \\ c', "a name": 2.5 };
  expect(statement.get(1)).toEqual(row);
  expect(statement.get(2)).toBe(undefined);
  expect([statement.all(1), statement.all(2)]).toEqual([[row], []]);
});

test("rows of the same columns in another order, or of others, are not mixed up", () => {
  const database = openDatabase(":memory:");
  const [there, back] = [prepare(database, "SELECT 1 AS a, 2 AS b"), prepare(database, "SELECT 2 AS b, 1 AS a")];
  const other = prepare(database, "SELECT 3 AS a, 4 AS c");
  for (const _ of [1, 2]) {
    expect([there.get(), back.get(), other.get()]).toEqual([
      { a: 1, b: 2 },
      { a: 1, b: 2 },
      { a: 3, c: 4 },
    ]);
  }
});

test("one column of all rows", () => {
  const database = openDatabase(":memory:");
  const values = prepareColumn<number>(database, "SELECT value FROM json_each(?) ORDER BY value DESC");
  expect([values("[1, 3, 2]"), values("[]")]).toEqual([[3, 2, 1], []]);
});
