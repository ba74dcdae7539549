/** What root makes for itself lies where no other user can put something else in its place. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeRuntimeFolder } from "../../src/daemon/runtime-folder.ts";
import { claimFolder } from "../../src/lib/claim-folder.ts";
import { FolderOfOthers, makeOwnFolder } from "../../src/lib/own-folder.ts";

const STRANGER = 54321;
const isRoot = process.getuid?.() === 0;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("makes a folder for its owner alone, with those above it, and says which", () => {
  const made = makeOwnFolder(join(folder, "a/b"));
  expect(made).toEqual([join(folder, "a"), join(folder, "a/b")]);
  expect(statSync(join(folder, "a/b")).mode & 0o777).toBe(0o700);
  expect(makeOwnFolder(join(folder, "a/b"))).toEqual([]);
});

describe.skipIf(!isRoot)("root's (needs root)", () => {
  const theirs = () => join(folder, "theirs");
  beforeEach(() => {
    mkdirSync(theirs());
  });

  it.each([
    ["of another user", () => chownSync(theirs(), STRANGER, STRANGER)],
    ["that others may write", () => chmodSync(theirs(), 0o777)],
    [
      "that others may write, behind a link",
      () => {
        rmSync(theirs(), { recursive: true });
        mkdirSync(join(folder, "real"));
        chmodSync(join(folder, "real"), 0o777);
        symlinkSync("real", theirs());
      },
    ],
  ])("is not made below a folder %s", (_, weaken) => {
    weaken();
    const path = join(theirs(), "d/e");
    expect(() => makeOwnFolder(path)).toThrow(FolderOfOthers);
    expect(() => claimFolder(path, { marker: "m", text: "", formerNames: ["x"] })).toThrow("other users may replace");
    expect(() => makeRuntimeFolder(path)).toThrow(/the runtime folder .* other users may replace/);
    expect(readdirSync(theirs())).toEqual([]);
  });

  it("is made in a folder where others keep theirs apart (as the one for temporary files), and used where it was", () => {
    chmodSync(theirs(), 0o1777);
    expect(makeOwnFolder(join(theirs(), "d"))).toHaveLength(1);
    chmodSync(theirs(), 0o777);
    expect(makeOwnFolder(join(theirs(), "d"))).toEqual([]);
  });
});
