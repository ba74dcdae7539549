/** Names of deleted files say when and by whom, are all different, and lead back to the names that the files had. */
import { expect, test } from "vitest";
import { deletedName, nameBeforeDeletion } from "../../../src/engine/history/past-names.ts";

const AT = "2026-11-27T10:22:31.500Z";
const author = (account: string) => ({ account });

test.each([
  "a",
  "a.txt",
  "a.b.txt",
  ".hidden",
  "a (2026-11-27 10.22.31).txt",
  "a (deleted)",
  "two words",
  "a\nb.c",
  "x.tar.gz",
])("%j", (name) => {
  for (const [at, by] of [
    [AT, null],
    [AT, author("ada")],
    [AT, author("a.b) (c")],
    [undefined, null],
  ] as const) {
    const taken = new Set<string>();
    const shown = Array.from({ length: 3 }, () => deletedName(name, at, by, taken));
    expect([...taken]).toEqual(shown);
    expect(shown.map(nameBeforeDeletion)).toEqual([name, name, name]);
  }
});

test("the extension stays at the end, and the time whole", () => {
  const taken = new Set<string>();
  const stamp = /^a \(2026-11-2\d \d\d\.\d\d\.31 ada\)/;
  const names = ["a", "a", "a.txt", "a.txt"].map((name) => deletedName(name, AT, author("ada"), taken));
  expect(names.map((name) => name.replace(stamp, "a STAMP"))).toEqual([
    "a STAMP",
    "a STAMP 2",
    "a STAMP.txt",
    "a STAMP 2.txt",
  ]);
});
