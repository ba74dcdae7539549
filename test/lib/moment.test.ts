/** Moments as people write them. The zone of this machine is set by each test's own expectation: Date knows it, too. */
import { describe, expect, test } from "vitest";
import { MOMENT_EXPECTED, parseMoment } from "../../src/lib/moment.ts";

const NOW = new Date(2026, 10, 27, 10, 22, 31).getTime();
const at = (text: string) => parseMoment(text, NOW);

describe("a moment", () => {
  test("so long ago", () => {
    expect(["90s", "10m", "2h", "3d", "1w", "10m ago"].map((text) => NOW - at(text))).toEqual([
      90_000, 600_000, 7_200_000, 259_200_000, 604_800_000, 600_000,
    ]);
  });

  test("by a word", () => {
    expect([at("now"), at("today"), at("Yesterday")]).toEqual([
      NOW,
      new Date(2026, 10, 27).getTime(),
      new Date(2026, 10, 26, 10, 22, 31).getTime(),
    ]);
  });

  test("yesterday is this time of the day before, also where the clocks were changed", () => {
    for (let day = 0; day < 366; day += 1) {
      const now = new Date(2026, 0, day, 12, 30);
      const before = new Date(parseMoment("yesterday", now.getTime()));
      expect([before.getHours(), before.getMinutes()]).toEqual([12, 30]);
    }
  });

  test("of a zone", () => {
    for (const text of ["2026-11-27T10:22:31Z", "2026-11-27T11:22:31+01:00", "2026-11-27T11:22:31.000+0100"]) {
      expect(at(text), text).toBe(Date.UTC(2026, 10, 27, 10, 22, 31));
    }
  });

  test("of this machine's zone, the first moment of a day where no time is said", () => {
    expect([
      at("2026-11-27"),
      at("2026-11-27 10:22"),
      at("2026-11-27T10:22:31.25"),
      at(" 2026-11-27 10:22:31 "),
    ]).toEqual([
      new Date(2026, 10, 27).getTime(),
      new Date(2026, 10, 27, 10, 22).getTime(),
      new Date(2026, 10, 27, 10, 22, 31, 250).getTime(),
      NOW,
    ]);
  });

  test.each([
    "",
    "3",
    "3x",
    "-3d",
    "1.5h",
    "2026-02-30",
    "2026-13-01",
    "2026-1-1",
    "2026-11-27 24:00",
    "2026-11-27 10",
    "tomorrow",
    "99999d",
    "2026-11-27T10:22:31+99:00",
    "@3",
  ])("is not %j", (text) => expect(() => at(text)).toThrow(MOMENT_EXPECTED));
});
