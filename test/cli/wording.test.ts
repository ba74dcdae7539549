import { expect, it } from "vitest";
import { describeUnsent, formatCount, formatDuration, formatSize } from "../../src/cli/wording.ts";

it("writes sizes, counts and durations as people do", () => {
  expect([0, 1023, 1024, 1536, 150 * 1024, 5 * 1024 ** 4].map(formatSize)).toEqual([
    "0 B",
    "1023 B",
    "1 KiB",
    "1.5 KiB",
    "150 KiB",
    "5 TiB",
  ]);
  expect([formatCount(1, "copy", "copies"), formatCount(0, "change")]).toEqual(["1 copy", "0 changes"]);
  expect([999, 75_000, 7_260_000, 200_000_000].map(formatDuration)).toEqual([
    "0 s",
    "1 min 15 s",
    "2 h 1 min",
    "2 days",
  ]);
});

it("says nothing is left, or how much", () => {
  expect(describeUnsent({ dirty: 0, bytesPending: 0 })).toBe("nothing");
  expect(describeUnsent({ dirty: 3, bytesPending: 1536 })).toBe("3 changes (1.5 KiB)");
  expect(describeUnsent({ dirty: 1, bytesPending: 0 })).toBe("1 change");
});
