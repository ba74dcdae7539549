import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { checkApart } from "../../src/cli/apart.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "wsfs-test-")));
  for (const name of ["m", "m2", "s", "s/in"]) mkdirSync(join(folder, name));
  symlinkSync("m", join(folder, "link"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const check = (dir: string, own: string) => () =>
  checkApart(join(folder, dir), [{ what: "--state-dir s", path: join(folder, own) }]);

it("lets folders beside each other be, there or not", () => {
  for (const [dir, own] of [
    ["m", "s"],
    ["m", "m2"],
    ["m2", "m"],
    ["m", "absent/far"],
    ["absent", "s"],
  ] as const) {
    expect(check(dir, own)).not.toThrow();
  }
});

it("refuses a folder that the mount would hide or would lie in, by whatever name", () => {
  const line = "; choose folders that do not lie in each other";
  expect(check("m", "m")).toThrow(`--state-dir s is the folder to mount on${line}`);
  expect(check("m", "link")).toThrow("is the folder to mount on");
  expect(check("link", "m/../m")).toThrow("is the folder to mount on");
  expect(check("m", "m/state")).toThrow(`--state-dir s lies inside ${folder}/m, which would hide it${line}`);
  expect(check("m", "link/a/b")).toThrow("which would hide it");
  expect(check("s/in", "s")).toThrow(`${folder}/s/in lies inside --state-dir s${line}`);
  expect(check("s/absent/x", "s")).toThrow("lies inside --state-dir s");
});
