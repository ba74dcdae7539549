/** What came after what: the saves of linked files. */
import { expect, test } from "vitest";
import { linkOfContent, orderOfSaves, savesOfBoth, savesOfContent, savesOfLink } from "../../src/contract/saves.ts";

const ONE = savesOfContent("one");
const TWO = savesOfContent("two", ONE);
const ONE_AGAIN = savesOfContent("one", TWO);

const ORDERS: readonly (readonly [
  what: string,
  shown: readonly string[],
  other: readonly string[],
  ReturnType<typeof orderOfSaves>,
])[] = [
  ["what was there before", ["c.3", "b.2", "a.1"], ["a.1"], "behind"],
  ["what came afterwards", ["b.2", "a.1"], ["d.4", "c.3", "b.2", "a.1"], "newer"],
  ["what was written at the same time", ["b.2", "a.1"], ["c.3", "a.1"], "apart"],
  ["a save that led to it in the second place", ["c.3", "b.2", "x.9", "a.1"], ["x.9", "a.1"], "behind"],
  ["content of long ago that came back", TWO, ONE_AGAIN, "newer"],
  ["what was there before content came back", ONE_AGAIN, TWO, "behind"],
  ["what came after the same content, saved in another way", ["x.5"], ["z.1", "x.9"], "newer"],
  ["the same content as what was replaced, saved in another way", ["z.1", "x.9"], ["x.5"], "behind"],
  ["nothing in common", ["a.1"], ["b.2"], "apart"],
];

test.each(ORDERS)("%s", (_, shown, other, order) => {
  expect(orderOfSaves(shown, other)).toBe(order);
});

test("of two that were each put in the place of the other, everybody takes the same", () => {
  const [one, other] = [
    ["x.1", "y.2", "a.0"],
    ["y.2", "x.1", "a.0"],
  ];
  expect(new Set([orderOfSaves(one, other), orderOfSaves(other, one)])).toEqual(new Set(["newer", "behind"]));
  const mixed = [
    ["x.1", "y.3"],
    ["y.2", "x.4"],
  ] as const;
  expect(new Set([orderOfSaves(mixed[0], mixed[1]), orderOfSaves(mixed[1], mixed[0])])).toEqual(
    new Set(["newer", "behind"]),
  );
});

test("the same write is the same save everywhere, the same content in the place of another is not", () => {
  expect(savesOfContent("x", ONE)).toEqual(savesOfContent("x", ONE));
  expect(savesOfContent("x", ONE)[0]).not.toBe(savesOfContent("x", TWO)[0]);
  expect(savesOfContent("x", ONE).slice(1)).toEqual(ONE);
});

test("a file written for long names the last saves only, and of both ways the last", () => {
  let saves: readonly string[] = [];
  for (let at = 0; at < 40; at += 1) saves = savesOfContent(`${at}`, saves);
  expect(saves.length).toBe(16);
  expect(new Set(saves).size).toBe(16);
  expect(savesOfBoth(saves, ["x.9", "y.8"]).slice(0, 2)).toEqual([saves[0], "x.9"]);
  expect(savesOfBoth(saves, ["x.9"]).length).toBe(16);
});

test("a node that gets other content names the saves it had: whoever wrote this put it in the place of that", () => {
  const had = { group: "g", hash: "one", saves: ["one.5", "zero.1"] };
  expect(linkOfContent("g", "x", ["x.9", "zero.1"], had)).toEqual({
    group: "g",
    hash: "x",
    saves: ["x.9", "one.5", "zero.1"],
  });
  expect(linkOfContent("g", "x", ["x.9"], { group: "g", hash: "one" }).saves).toEqual(["x.9", ...ONE]);
  expect(linkOfContent("g", "x", ["x.9"], { ...had, group: "other" }).saves).toEqual(["x.9"]);
});

test("saves that a merge left of former content are those the new one came after", () => {
  expect(savesOfLink({ group: "g", hash: "one", saves: ["one.5"] })).toEqual(["one.5"]);
  expect(savesOfLink({ group: "g", hash: "two", saves: [...ONE] })).toEqual(TWO);
  expect(savesOfLink({ group: "g", hash: "one" })).toEqual(ONE);
});
