/**
 * Every conflict of conflict-cases.ts on two mounts, whoever is first at the gateway, with and
 * without lag; and docs/user/conflict-table.md, which is made of the same list (`WSFS_WRITE_TABLES=1`
 * writes it).
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SEED } from "../support/seed.ts";
import { CONFLICTS } from "./support/conflict-cases.ts";
import { type Conflict, endOf, type First, playConflict } from "./support/conflict-run.ts";
import { conflictTable } from "./support/conflict-table.ts";

const TABLE = fileURLToPath(new URL("../../docs/user/conflict-table.md", import.meta.url));

const titled = CONFLICTS.map((conflict): [string, Conflict] => [
  `${conflict.one} | ${conflict.other}`.replaceAll("`", ""),
  conflict,
]);
const WAYS: readonly { first: First; isLate: boolean; way: string }[] = [
  { first: "one", isLate: false, way: "the one is first" },
  { first: "other", isLate: false, way: "the other is first" },
  { first: "one", isLate: true, way: "the one is first, and everything is late" },
  { first: "other", isLate: true, way: "the other is first, and everything is late" },
];

describe.each(titled)("%s", (_, conflict) => {
  test.each(WAYS)("$way", async ({ first, isLate }) => {
    const { shown, before, after } = await playConflict(conflict, first, isLate, SEED);
    expect(shown).toEqual(endOf(conflict, first));
    for (const [now, then] of Object.entries(conflict.same ?? {})) expect(after.get(now)).toBe(before.get(then));
  });
});

test("the table is made of this list", () => {
  const made = conflictTable(CONFLICTS);
  if (process.env.WSFS_WRITE_TABLES === "1") writeFileSync(TABLE, made);
  expect(readFileSync(TABLE, "utf8")).toBe(made);
});
