/** Words of policies: what they keep, in which spelling they are shown, and what is refused. */
import { expect, test } from "vitest";
import { inOneSpelling, isKept, readPolicy } from "../../../src/gateway/retention/policy.ts";

const policy = (versions: string) => readPolicy({ versions, deleted: "ever" });
const at = (time: string) => Date.parse(time);
const NOW = at("2026-05-20T12:00:00Z");

test.each([
  [
    "all for 1d, hourly for 7d,daily for 30d , monthly for ever",
    "all for 1d, hourly for 7d, daily for 30d, monthly for ever",
  ],
  ["all", "all for ever"],
  ["none", "none"],
  ["weekly for 8w, yearly for 2y, hourly for 36h", "weekly for 56d, yearly for 730d, hourly for 36h"],
])("%s is shown as %s, and that as itself", (versions, shown) => {
  expect(inOneSpelling({ versions, deleted: " 30d " })).toEqual({ versions: shown, deleted: "30d" });
  expect(inOneSpelling({ versions: shown, deleted: "30d" }).versions).toBe(shown);
});

test.each([
  "",
  "hourly",
  "hourly for",
  "hourly for 7",
  "hourly for 1d,",
  "minutely for 1d",
  "all for -1d",
  "all for 12345678d",
  "toString for 1d",
])("%j is no policy of versions", (versions) => {
  expect(() => inOneSpelling({ versions, deleted: "ever" })).toThrow(/^versions: expected .*, got "/);
});
test.each(["", "30", "1m", "never", "for ever"])("%j is no age of what was deleted", (deleted) => {
  expect(() => inOneSpelling({ versions: "all", deleted })).toThrow(/^deleted: expected an age such as 12h, .*, got "/);
});

test.each([
  // What it was at a full hour; one who came after the hour and was gone before the next was at none.
  ["hourly for 7d", "2026-05-20T09:59:59.999Z", "2026-05-20T10:00:00.001Z", true],
  ["hourly for 7d", "2026-05-20T10:00:00Z", "2026-05-20T10:00:00.001Z", true],
  ["hourly for 7d", "2026-05-20T09:00:00.001Z", "2026-05-20T10:00:00Z", false],
  ["hourly for 7d", "2026-05-13T11:30:00Z", "2026-05-13T12:30:00Z", true],
  ["hourly for 7d", "2026-05-13T10:30:00Z", "2026-05-13T11:59:00Z", false],
  ["daily for 30d", "2026-05-18T23:00:00Z", "2026-05-19T01:00:00Z", true],
  ["daily for 30d", "2026-05-19T01:00:00Z", "2026-05-19T23:00:00Z", false],
  // 18 May 2026 was a Monday.
  ["weekly for 90d", "2026-05-17T12:00:00Z", "2026-05-18T12:00:00Z", true],
  ["weekly for 90d", "2026-05-18T12:00:00Z", "2026-05-19T12:00:00Z", false],
  ["monthly for ever", "1999-02-27T00:00:00Z", "1999-03-01T00:00:00.001Z", true],
  ["monthly for ever", "2026-05-02T00:00:00Z", "2026-05-20T00:00:00Z", false],
  ["yearly for 1y", "2025-12-31T00:00:00Z", "2026-01-01T00:00:01Z", true],
  // The age is that of the moment, not of the version: what was there for a year and is replaced now was there yesterday.
  ["all for 1d", "2025-01-01T00:00:00Z", "2026-05-20T11:59:00Z", true],
  ["all for 1d", "2026-05-19T11:00:00Z", "2026-05-19T12:00:00Z", false],
  ["all for 1d", "2026-05-19T11:00:00Z", "2026-05-19T12:00:00.001Z", true],
  ["none", "2026-05-20T11:00:00Z", "2026-05-20T11:59:59Z", false],
  // What one step does not keep another may.
  ["all for 1h, monthly for ever", "2026-04-30T00:00:00Z", "2026-05-02T00:00:00Z", true],
] as const)("%s, of a content from %s until %s: %s", (versions, from, until, kept) => {
  expect(isKept(policy(versions), at(from), at(until), NOW)).toBe(kept);
});
