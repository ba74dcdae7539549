/** The name of a mount in the journal: as a header takes it, shown to people, and taken back from them. */
import { expect, test } from "vitest";
import { mountName, parseMountName, showMountName } from "../../src/contract/mount-name.ts";

test("is what a header takes", () => {
  expect(mountName("desk", "/home/ada/work")).toBe("desk:/home/ada/work");
  expect(mountName("desk", "/home/ada/Büro 1\n")).toBe("desk:/home/ada/B%C3%BCro%201%0A");
  expect(mountName("desk", `/\ud800/${"x".repeat(200)}`)).toMatch(/^desk:\/%EF%BF%BD\/x{112}$/);
});

test("is shown as the folder is called, and known by that", () => {
  expect(showMountName("desk:/home/ada/B%C3%BCro%201")).toBe("desk:/home/ada/Büro 1");
  expect(parseMountName("desk:/home/ada/Büro 1")).toBe("desk:/home/ada/B%C3%BCro%201");
  expect([parseMountName("ada"), showMountName("desk:/%C3")]).toEqual([undefined, "desk:/%C3"]);
});
