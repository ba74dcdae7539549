import { describe, expect, it } from "vitest";
import { describeProgress, percentOf } from "../../src/cli/drain.ts";
import { createPace } from "../../src/cli/pace.ts";

const MIB = 1024 * 1024;
const PROGRESS = { dirty: 3, parked: 0, bytesPending: 3 * MIB, bytesSent: 0, settled: false };

/** What a pace says after each of these, a second apart. */
function leftAfter(seen: readonly (readonly [dirty: number, bytesPending: number, bytesSent: number])[]) {
  const pace = createPace();
  return seen.map(([dirty, bytesPending, bytesSent], second) => {
    pace.note(second * 1000, { dirty, bytesPending, bytesSent });
    return pace.leftMs === undefined ? undefined : Math.round(pace.leftMs);
  });
}

describe("the time left", () => {
  it("is told by the number of many small ones", () => {
    const deletions = [100, 90, 80, 70].map((dirty) => [dirty, 0, 0] as const);
    expect(leftAfter(deletions)).toEqual([undefined, 9_000, 8_000, 7_000]);
  });

  it("is told by the bytes of a large one, while small ones go quickly and after", () => {
    const seen = Array.from(
      { length: 15 },
      (_, second) => [second === 0 ? 31 : 1, (100 - second) * MIB, second * MIB] as const,
    );
    const expected = [undefined, ...seen.slice(1).map((_, index) => (99 - index) * 1000)];
    expect(leftAfter(seen)).toEqual(expected);
  });

  it("is unknown when nothing moves, when only the answer is waited for, and when small ones tell nothing of a large one", () => {
    const stopped = [3, 2, 2, 2, 2, 2].map((dirty) => [dirty, 0, 0] as const);
    expect(leftAfter(stopped)).toEqual([undefined, 2_000, 4_000, 6_000, undefined, undefined]);
    expect(leftAfter([MIB, 2 * MIB].map((sent) => [1, 0, sent] as const))).toEqual([undefined, undefined]);
    expect(leftAfter([0, 80].map((sent) => [1, 300 * MIB, sent] as const))).toEqual([undefined, undefined]);
    // More than before: changes were made meanwhile, or a mount was started again.
    expect(leftAfter([0, 0].map((_, index) => [5 + index, MIB, 0] as const))).toEqual([undefined, undefined]);
  });
});

describe("the line of progress", () => {
  it("says how much, how fast, how long yet", () => {
    const moving = { bytesPerSecond: MIB, leftMs: 75_000 };
    const line = "3 changes (3 MiB) to upload, 1 MiB/s, about 1 min 15 s left, 2 MiB sent";
    expect(describeProgress({ ...PROGRESS, bytesSent: 2 * MIB }, moving)).toBe(line);
    expect(describeProgress(PROGRESS, { bytesPerSecond: 0, leftMs: 20 })).toBe(
      "3 changes (3 MiB) to upload, about 1 s left",
    );
  });

  it("says instead what is stuck, and steers no terminal", () => {
    const stuck = "1 parked: /e\u001b[31m\n: refused: too large";
    expect(describeProgress({ ...PROGRESS, stuck }, { bytesPerSecond: 10, leftMs: 20 })).toBe(
      "3 changes (3 MiB) to upload, 10 B/s; 1 parked: /e\\x1b[31m\\x0a: refused: too large",
    );
    expect(describeProgress({ ...PROGRESS, dirty: 0, stuck: "no answer" }, { bytesPerSecond: 0, leftMs: 1 })).toBe(
      "all uploaded; no answer",
    );
  });

  it("says what is waited for at the end", () => {
    const idle = { bytesPerSecond: 10, leftMs: undefined };
    const done = { ...PROGRESS, dirty: 0, bytesPending: 0, bytesSent: 1024 };
    expect(describeProgress(done, idle)).toBe("all uploaded; waiting for the gateway's index, 1 KiB sent");
    expect(describeProgress({ ...done, settled: true }, idle)).toBe("all uploaded, 1 KiB sent");
  });
});

it("fills the bar by bytes, or by changes that have none, and not before nothing is left", () => {
  expect(percentOf({ ...PROGRESS, bytesSent: 9 * MIB }, 3)).toBe(75);
  expect(percentOf({ ...PROGRESS, bytesPending: 0 }, 12)).toBe(75);
  expect(percentOf({ ...PROGRESS, bytesPending: 0, bytesSent: MIB }, 3)).toBe(99);
  expect(percentOf({ ...PROGRESS, dirty: 0 }, 0)).toBe(100);
});
