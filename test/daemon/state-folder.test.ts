import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { defaultStateFolder, findStateFolder, readOwner, writeOwner } from "../../src/daemon/state-folder.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "wsfs-test-"));
});
afterEach(() => rmSync(home, { recursive: true }));

function made(id: string, name: string, baseUrl: string, path = defaultStateFolder(home, id), view?: string): string {
  mkdirSync(path);
  writeOwner(path, { id, name, baseUrl, ...(view === undefined ? {} : { view }) });
  return path;
}

it("is one folder below the base whatever the id is", () => {
  for (const id of ["a", "..", ".", "a/b", "../../etc", "gateway"]) {
    expect(dirname(defaultStateFolder(home, id)), id).toBe(home);
    expect(defaultStateFolder(home, id)).not.toBe(join(home, id));
  }
  expect(defaultStateFolder(home, "a.b")).not.toBe(defaultStateFolder(home, "a%2Eb"));
});

it("is found again by name or id, but never for another gateway", () => {
  mkdirSync(join(home, "run"));
  const one = made("1", "main", "http://a");
  const two = made("2", "main", "http://b");
  writeFileSync(join(made("3", "other", "http://a"), "workspace.json"), "damaged");
  expect(findStateFolder(home, "http://a", "main")).toBe(one);
  expect(findStateFolder(home, "http://b", "2")).toBe(two);
  expect(findStateFolder(home, "http://c", "main")).toBe(undefined);
  expect(findStateFolder(home, "http://a", "other")).toBe(undefined);
  expect(findStateFolder(join(home, "absent"), "http://a", "main")).toBe(undefined);
  expect(readOwner(one)).toEqual({ id: "1", name: "main", baseUrl: "http://a" });
});

it("is another one for each folder of the workspace and for the past, whatever the ids are", () => {
  const views = [{}, { folder: "past" }, { folder: "f" }].flatMap((view) => [view, { ...view, isPast: true }]);
  const folders = views.map((view) => defaultStateFolder(home, "1", view));
  expect(new Set([...folders, defaultStateFolder(home, "1.folder-f"), defaultStateFolder(home, "1.past")]).size).toBe(
    8,
  );
  const past = made("1", "main", "http://a", defaultStateFolder(home, "1", { isPast: true }), "past /");
  const folder = made("1", "main", "http://a", defaultStateFolder(home, "1", { folder: "f" }), "now /f");
  const find = (view?: string) => findStateFolder(home, "http://a", "main", view);
  expect([find("past /"), find("now /f"), find("past /f"), find()]).toEqual([past, folder, undefined, undefined]);
  const whole = made("1", "main", "http://a");
  expect(find()).toBe(whole);
});

it("who owns it is written where that is not what stands there: a mount is taken over on a full disk too", () => {
  const path = made("1", "main", "http://a");
  // No file can be made any more.
  mkdirSync(join(path, "workspace.json.new"));
  writeOwner(path, { id: "1", name: "main", baseUrl: "http://a" });
  expect(() => writeOwner(path, { id: "1", name: "renamed", baseUrl: "http://a" })).toThrow("EISDIR");
  expect(readOwner(path)).toEqual({ id: "1", name: "main", baseUrl: "http://a" });
});
