/** Whether a mount shows real owners: asked for, kept of before, or by default. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { chooseOwners } from "../../src/daemon/choose-owners.ts";
import type { DaemonSettings } from "../../src/daemon/settings.ts";
import { writeOwner } from "../../src/daemon/state-folder.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { createSettings } from "../../src/metadata/settings.ts";

const SHARED = { allowOther: true } as DaemonSettings;
const ALONE = { allowOther: false } as DaemonSettings;
const REAL = { owners: "real" } as DaemonSettings;
const MINE = { owners: "mine", allowOther: true } as DaemonSettings;
const BY_LIBRARY = { fuseNative: { source: "w", allowOther: true } };
const isRoot = process.getuid?.() === 0;
const byDefault = isRoot ? "real" : "mine";

let folder: string;
let rows: ReturnType<typeof createSettings>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
  rows = createSettings(openDatabase(":memory:"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const choose = (settings: DaemonSettings) => chooseOwners(settings, folder, rows);

test("a new state dir of root's shows real owners where other users have access", () => {
  expect(choose(ALONE)).toBe("mine");
  expect(choose({ ...SHARED, ...BY_LIBRARY })).toBe("mine");
  expect(choose(SHARED)).toBe(byDefault);
});

test("what a state dir was used with stays, until something else is asked for", () => {
  expect(choose(SHARED)).toBe(byDefault);
  rows.set("workspace", "w");
  expect(choose(ALONE)).toBe(byDefault);
  expect([choose(MINE), choose(SHARED)]).toEqual(["mine", "mine"]);
  expect([choose(REAL), choose(ALONE)]).toEqual(["real", "real"]);
});

test.each(["its rows", "its file beside them"])("one that was used before there were real ones stays (by %s)", (by) => {
  if (by === "its rows") rows.set("workspace", "w");
  else writeOwner(folder, { id: "w", name: "w", baseUrl: "http://a" });
  expect(choose(SHARED)).toBe("mine");
  expect([choose(REAL), choose(SHARED)]).toEqual(["real", "real"]);
});

test("through libfuse there are none, asked for or kept", () => {
  expect(() => choose({ ...REAL, ...BY_LIBRARY })).toThrow("give --owners mine");
  choose(REAL);
  expect(() => choose({ ...ALONE, ...BY_LIBRARY })).toThrow("give --owners mine");
  expect(choose({ ...MINE, ...BY_LIBRARY })).toBe("mine");
});
