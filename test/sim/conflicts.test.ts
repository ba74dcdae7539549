/**
 * Conflicts: two sides change the same file or name. Each row of support/conflict-cases.ts is played on two mounts,
 * whichever is first at the gateway, with and without lag. docs/user/conflict-table.md is made of the same list
 * (`WSFS_WRITE_TABLES=1` writes it).
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SEED } from "../support/seed.ts";
import { CONFLICTS } from "./support/conflict-cases.ts";
import { type Conflict, endOf, type First, playConflict } from "./support/conflict-run.ts";
import { conflictTable } from "./support/conflict-table.ts";
import { begin } from "./support/one-world.ts";
import { bytesOf, runProgram } from "./support/programs.ts";

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

describe("a file that another client turned into a symlink by its attributes alone", () => {
  const NEWS = bytesOf("news", 40);

  /** Not sent before it is heard what was done elsewhere. */
  async function retyped(isOpen: boolean) {
    const it = await begin({}, { settings: { debounceMs: 20_000, maximumAgeMs: 60_000 } });
    const { world, calls } = it;
    await it.save("a");
    await it.drain();
    const { items } = await world.run(world.outside.listFolder(world.workspace.root));
    const id = items.find(({ name }) => name === "a")?.id ?? "";
    const fd = isOpen ? await world.run(calls().open("a", { write: true })) : undefined;
    if (fd === undefined) await world.run(runProgram(calls(), { do: "save", path: "a", size: NEWS.length }, "news"));
    else await world.run(calls().write(fd, 0, NEWS));
    await world.run(world.outside.patchNode(id, { attributes: { type: "symlink", target: "elsewhere" } }));
    await world.clock.advance(5_000);
    return { it, fd };
  }

  for (const isOpen of [false, true]) {
    test(`what was written here ${isOpen ? "by a program that still has it open" : "and not sent yet"} is kept beside it`, async () => {
      const { it, fd } = await retyped(isOpen);
      const { world, calls } = it;
      if (fd !== undefined) {
        await world.run(calls().write(fd, NEWS.length, NEWS));
        await world.run(calls().close(fd));
      }
      await world.clock.advance(90_000);
      await it.drain();
      world.check();
      expect(await world.run(calls().readlink("a"))).toBe("elsewhere");
      const [copy, ...more] = (await it.names()).filter((name) => name !== "a");
      expect([copy, more]).toEqual([expect.stringContaining("(conflict, "), []]);
      expect(await it.content(copy ?? "")).toBe((fd === undefined ? NEWS : Buffer.concat([NEWS, NEWS])).toString());
    });
  }
});
