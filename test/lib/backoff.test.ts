import { expect, test } from "vitest";
import { backoff } from "../../src/lib/backoff.ts";

const PAUSES = { firstMs: 100, maxMs: 1500 };
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test("pauses double from the first to the longest, however many failures there were", () => {
  expect(upTo(6).map((failures) => backoff(PAUSES, failures))).toEqual([100, 200, 400, 800, 1500, 1500]);
  expect(backoff(PAUSES, 100_000)).toBe(1500);
});

test("with a clock half is certain, half is chance, and all are whole milliseconds", () => {
  const pauses = (random: number) => upTo(5).map((failures) => backoff(PAUSES, failures, { random: () => random }));
  expect(pauses(0)).toEqual([50, 100, 200, 400, 750]);
  expect(pauses(0.999)).toEqual([100, 200, 400, 800, 1499]);
  expect(pauses(0.333)).toEqual([67, 133, 267, 533, 1000]);
});
