import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Claim, claimFolder, FolderOfOthers, isUnused, unclaimFolder } from "../../src/lib/claim-folder.ts";

const CLAIM: Claim = { marker: "ours", text: "A folder of ours.", formerNames: ["a", "b"] };

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "wsfs-test-")), "f");
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

const mode = () => statSync(folder).mode & 0o777;

it("makes a folder that is missing, and takes one that is empty or only has lost+found, for its owner alone", () => {
  claimFolder(folder, CLAIM);
  expect([mode(), readdirSync(folder)]).toEqual([0o700, ["ours"]]);
  expect(readFileSync(join(folder, "ours"), "utf8")).toBe("A folder of ours.\n");
  for (const names of [[], ["lost+found"]]) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder, { mode: 0o755 });
    for (const name of names) mkdirSync(join(folder, name));
    claimFolder(folder, CLAIM);
    expect([mode(), readdirSync(folder).sort()]).toEqual([0o700, [...names, "ours"].sort()]);
  }
});

it("takes one of ours again, whatever it holds, and one from before there were markers", () => {
  claimFolder(folder, CLAIM);
  writeFileSync(join(folder, "x"), "");
  chmodSync(folder, 0o755);
  claimFolder(folder, CLAIM);
  expect(mode()).toBe(0o700);
  rmSync(join(folder, "ours"));
  for (const name of ["a", "b"]) writeFileSync(join(folder, name), "");
  claimFolder(folder, CLAIM);
  expect(readdirSync(folder)).toContain("ours");
});

it("leaves alone what holds anything else, and says what", () => {
  mkdirSync(folder, { mode: 0o755 });
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, "a"), "");
  expect(() => claimFolder(folder, CLAIM)).toThrow(FolderOfOthers);
  expect(() => claimFolder(folder, CLAIM)).toThrow('it holds "a" and no file "ours"');
  writeFileSync(join(folder, "x"), "");
  expect(() => claimFolder(folder, CLAIM)).toThrow("it holds 2 entries");
  expect([mode(), readdirSync(folder).sort()]).toEqual([0o755, ["a", "x"]]);
});

it("throws the system's error for what is no folder", () => {
  writeFileSync(folder, "");
  expect(() => claimFolder(folder, CLAIM)).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
});

it.skipIf(process.getuid?.() !== 0)(
  "leaves alone what belongs to another user, empty or not (needs root, to make one)",
  () => {
    mkdirSync(folder, { mode: 0o777 });
    chownSync(folder, 54321, 54321);
    expect(() => claimFolder(folder, CLAIM)).toThrow("it belongs to user 54321");
    expect(readdirSync(folder)).toEqual([]);
  },
);

it("takes back what was put into one that was unused, with the folders that were made for it, and nothing else", () => {
  const inner = join(folder, "a/b");
  const made = claimFolder(inner, CLAIM);
  expect(isUnused(inner, CLAIM, ["lock"])).toBe(true);
  writeFileSync(join(inner, "lock"), "");
  expect([isUnused(inner, CLAIM, ["lock"]), isUnused(inner, CLAIM, [])]).toEqual([true, false]);
  mkdirSync(join(inner, "d/e"), { recursive: true });
  writeFileSync(join(folder, "else"), "");
  unclaimFolder(inner, made);
  expect(readdirSync(folder)).toEqual(["else"]);
  mkdirSync(inner, { recursive: true });
  mkdirSync(join(inner, "lost+found"));
  unclaimFolder(inner, claimFolder(inner, CLAIM));
  expect(readdirSync(inner)).toEqual(["lost+found"]);
});
