/** Patterns of paths: what they match, and that none takes long. */
import { describe, expect, test } from "vitest";
import { matchesPattern, PATTERN_MAX, parsePattern } from "../../../src/gateway/triggers/path-pattern.ts";
import { seededRandom } from "../../support/virtual-clock.ts";

function matches(text: string, path: string): boolean {
  const pattern = parsePattern(text);
  if (pattern === undefined) throw new Error(`${text} is no pattern`);
  return matchesPattern(pattern, path);
}

test.each([
  ["/inbox/**", ["/inbox", "/inbox/a", "/inbox/a/b"], ["/", "/inboxes", "/a/inbox", "/Inbox/a"]],
  ["/inbox/*", ["/inbox/a", "/inbox/.b"], ["/inbox", "/inbox/a/b"]],
  ["/**/*.pdf", ["/a.pdf", "/a/b/c.pdf", "/.pdf"], ["/a.pdf/b", "/a.pdfx", "/apdf"]],
  ["/**", ["/", "/a", "/a/b"], []],
  ["/", ["/"], ["/a"]],
  ["/*/x/**/y?", ["/a/x/y1", "/a/x/b/c/yz"], ["/x/y1", "/a/x/y", "/a/b/x/y1"]],
  ["/**/a/**/b/**", ["/a/b", "/1/a/2/3/b/4", "/a/a/b/b"], ["/b/a", "/a"]],
  ["/a**b", ["/ab", "/axxb"], ["/a/b", "/a/x/b"]],
  ["/\\*\\?\\\\", ["/*?\\"], ["/x?\\"]],
  ["/[ab].(c|d)+$", ["/[ab].(c|d)+$"], ["/a.c"]],
  ["/?", ["/é", "/😀"], ["/", "/ab"]],
])("%s", (pattern, yes, no) => {
  expect([pattern, yes.filter((path) => !matches(pattern, path))]).toEqual([pattern, []]);
  expect([pattern, no.filter((path) => matches(pattern, path))]).toEqual([pattern, []]);
});

test.each(["", "a", "*", "//", "/a/", "/a//b", "/a\\", "/a\\/b", `/${"a".repeat(PATTERN_MAX)}`])(
  "%j is none",
  (pattern) => {
    expect(parsePattern(pattern)).toBeUndefined();
  },
);

test("short ones are as a plain, slow reading of them has it", () => {
  const random = seededRandom(5);
  const draw = (letters: string, length: number) =>
    Array.from({ length }, () => letters[Math.floor(random() * letters.length)]).join("");
  const slow = (pattern: string) =>
    new RegExp(
      `^${pattern
        .split("/")
        .slice(1)
        .map((name) => (name === "**" ? "(?:/[^/]+)*" : `/${name.replace(/\*+/g, "[^/]*").replace(/\?/g, "[^/]")}`))
        .join("")}$`,
    );
  let met = 0;
  for (let n = 0; n < 20_000; n += 1) {
    const pattern = `/${draw("ab*?/", 1 + Math.floor(random() * 8))}`;
    const path = `/${draw("ab/", 1 + Math.floor(random() * 8))}`;
    if (parsePattern(pattern) === undefined || /\/\/|.\/$/.test(path) || path === "/") continue;
    const expected = slow(pattern).test(path);
    if (expected) met += 1;
    expect([pattern, path, matches(pattern, path)]).toEqual([pattern, path, expected]);
  }
  expect(met).toBeGreaterThan(500);
});

/** By trying all ways these would not end. */
describe("none takes long", () => {
  const long = (text: string) => `/${text.repeat(Math.floor((PATTERN_MAX - 2) / text.length))}`.replace(/\/$/, "");
  test.each([
    [long("*a"), `/${"a".repeat(255)}`, false],
    [`${long("*a").slice(0, -400)}*b`, `/${"a".repeat(255)}`, false],
    [long("**/"), "/a".repeat(2000), true],
    [`${long("**/*a*/").replace(/\/[^/]*$/, "")}/x`, `/${"a".repeat(100)}`.repeat(300), false],
    [long("?*"), `/${"😀".repeat(60)}`, false],
  ])("number %#", (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected);
  });
});
