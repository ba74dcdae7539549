import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { knowsWriters, maySysAdmin, timesAreExact, whyNoPassthrough } from "../../src/daemon/kernel.ts";
import { systemError } from "../../src/lib/system-error.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-kernel-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("knows by its release, and the disk, whether each change of a file has a time of its own", () => {
  const coarse = ["6.12.99-1", "6.9", "5.19.0", "unknown"];
  expect(coarse.map((release) => timesAreExact(release, folder))).toEqual(coarse.map(() => false));
  // Of no disk at all.
  expect(timesAreExact("6.18.0", "/proc")).toBe(false);
});

it("finds out whether a disk tells of writers, and leaves nothing", () => {
  const refuses = () => {
    throw systemError("EINVAL", "fcntl", folder);
  };
  expect([knowsWriters(folder, () => true), knowsWriters(folder, refuses)]).toEqual([true, false]);
  expect(readdirSync(folder)).toEqual([]);
});

it("knows why passthrough is not to be had", () => {
  expect([maySysAdmin("Name:\tnode\nCapEff:\t000001fffeffffff\n"), maySysAdmin("CapEff:\t0000000000000000\n")]).toEqual(
    [true, false],
  );
  expect(whyNoPassthrough(false, folder, () => true)).toContain("--no-passthrough");
});
