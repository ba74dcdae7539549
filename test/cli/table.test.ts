/** Tables and fields as people see them. */
import { describe, expect, test } from "vitest";
import { fieldLines, showTime, table } from "../../src/cli/table.ts";

const HEADS = ["NAME", "ID", "DETAIL"];

describe("a table", () => {
  test("has its columns under their heads, two spaces apart, and none behind the last", () => {
    expect(
      table(HEADS, [
        ["a", "12345", "x"],
        ["longer", "1", ""],
      ]),
    ).toBe(["NAME    ID     DETAIL", "a       12345  x", "longer  1", ""].join("\n"));
  });

  test("of no rows is nothing, also on a terminal", () => {
    expect([table(HEADS, []), table(HEADS, [], 10)]).toEqual(["", ""]);
  });

  test("keeps its columns where cells are empty or missing", () => {
    const lines = table(HEADS, [["", "", "x"], ["a", "", ""], ["b"]]).split("\n");
    expect(lines).toEqual(["NAME  ID  DETAIL", "          x", "a", "b", ""]);
  });

  const long = "x".repeat(100);
  const widthsOf = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => line.length);

  test("is cut on a terminal only, to its width, the last column first", () => {
    expect(widthsOf(table(HEADS, [[long, "1", long]]))[1]).toBe(206);
    for (const width of [160, 80, 40]) {
      const text = table(HEADS, [[long, "1", long]], width);
      expect(widthsOf(text)[1]).toBe(width);
      expect(text).toMatch(/…\n$/);
    }
    const [, row] = table(HEADS, [[long, "1", long]], 160).split("\n");
    expect(row).toBe(`${long}  1   ${"x".repeat(53)}…`);
    expect(table(HEADS, [["a", "1", "short"]], 80)).toBe(table(HEADS, [["a", "1", "short"]]));
  });

  test("never cuts ids, however narrow the terminal; other columns keep some of what they say", () => {
    const id = "3bb990d5-18b8-4615-ae70-c5c749a92b5b";
    const [head, row] = table(["ID", "NAME", "DETAIL"], [[id, long, long]], 20).split("\n");
    expect(row).toBe(`${id}  ${"x".repeat(11)}…  ${"x".repeat(11)}…`);
    expect(head).toBe(`${"ID".padEnd(id.length)}  NAME          DETAIL`);
    const last = table(["NAME", "ID"], [[long, id]], 20).split("\n")[1];
    expect(last).toBe(`${"x".repeat(11)}…  ${id}`);
  });

  test("counts columns of the terminal: wide characters are two, those that are combined none", () => {
    const rows = [
      ["資料", "1"],
      ["👩‍👧", "2"],
      ["e\u0301", "3"],
      ["a\u200bb", "4"],
      ["☁️", "5"],
      ["ab", "6"],
    ];
    expect(table(["NAME", "ID"], rows)).toBe(
      `NAME  ID\n資料  1\n👩‍👧    2\ne\u0301     3\na\u200bb    4\n☁️    5\nab    6\n`,
    );
  });

  test("cuts between characters, never inside of one", () => {
    const cells = (text: string, width: number) => table(["N"], [[text]], width).split("\n")[1];
    expect(cells("資".repeat(20), 14)).toBe(`${"資".repeat(6)}…`);
    expect(cells("👩‍👧".repeat(20), 13)).toBe(`${"👩‍👧".repeat(6)}…`);
    expect(cells("e\u0301".repeat(20), 13)).toBe(`${"e\u0301".repeat(12)}…`);
  });

  test("shows what a name holds, and is not steered by it", () => {
    const text = table(["NAME", "ID"], [["a\u001b[2Jb\nc", "1"]]);
    expect(text).toBe("NAME            ID\na\\x1b[2Jb\\x0ac  1\n");
  });
});

test("fields are one a line, those without a value left out, and none ends its line", () => {
  expect(
    fieldLines([
      ["Name", "a\nb"],
      ["Nothing", null],
      ["Empty", ""],
      ["Missing", undefined],
      ["Identifier", "1"],
    ]),
  ).toBe("Name        a\\x0ab\nIdentifier  1\n");
});

test("a time is this machine's, to the second", () => {
  const at = new Date(2026, 0, 2, 3, 4, 5, 678);
  expect([showTime(at.toISOString()), showTime(null)]).toEqual(["2026-01-02 03:04:05", ""]);
});
