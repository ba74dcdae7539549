/** Names of copies that are kept: possible ones, and whose they are can be read. */
import { expect, test } from "vitest";
import { nameProblem } from "../../../src/contract/names.ts";
import { conflictName } from "../../../src/engine/sync/conflict-name.ts";
import { wallTime } from "../../../src/lib/clocks.ts";

const TIME = Date.parse("2026-01-31T12:00:05.000Z");
const free = () => false;

test("a copy says whose it is and since when, before the extension", () => {
  expect(conflictName("report.txt", "here", wallTime(TIME), free)).toBe(
    "report (conflict, here, 2026-01-31 12.00.05).txt",
  );
  expect(conflictName(".bashrc", "here", wallTime(TIME), free)).toBe(".bashrc (conflict, here, 2026-01-31 12.00.05)");
});

test("a long name is cut, its extension stays", () => {
  const name = conflictName(`${"ä".repeat(125)}.txt`, "here", wallTime(TIME), free);
  expect(nameProblem(name)).toBeUndefined();
  expect(name).toMatch(/^ä{100,} \(conflict, here, 2026-01-31 12\.00\.05\)\.txt$/);
});

test("what follows the only dot of a long name is no extension", () => {
  const name = conflictName(`Dr. ${"x".repeat(240)}`, "here", wallTime(TIME), free);
  expect(nameProblem(name)).toBeUndefined();
  expect(name).toMatch(/^Dr\. x+ \(conflict, here, 2026-01-31 12\.00\.05\)$/);
});
