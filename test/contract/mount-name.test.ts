/** The name of a mount in the journal: as the daemon gives it, shown to people, and taken back from them. */
import { expect, test } from "vitest";
import { mountName, parseMountName, showMountName } from "../../src/contract/mount-name.ts";
import { mountName as ofDaemon } from "../../src/daemon/start.ts";

const PLACES = [
  ["desk", "/home/ada/folder"],
  ["desk", "/home/ada/Büro 1\n"],
  ["desk", `/\ud800/${"x".repeat(200)}`],
  ["desk", `/${"ü".repeat(200)}`],
] as const;

test.each(PLACES)("%s:%j is what the daemon calls it", (host, folder) => {
  expect(mountName(host, folder)).toBe(ofDaemon(host, folder));
});

test("is shown as the folder is called, and known by that", () => {
  expect(showMountName("desk:/home/ada/B%C3%BCro%201")).toBe("desk:/home/ada/Büro 1");
  expect(parseMountName("desk:/home/ada/Büro 1")).toBe("desk:/home/ada/B%C3%BCro%201");
  expect([parseMountName("ada"), showMountName("desk:/%C3")]).toEqual([undefined, "desk:/%C3"]);
});
