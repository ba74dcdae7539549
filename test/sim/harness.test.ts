/** The simulation itself: the same seed is the same history, and what it is there to catch is caught. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { playHistory } from "./history.ts";
import { stepsOf } from "./steps.ts";

const [steps = []] = fc.sample(stepsOf({ mounts: 2, isOutside: true, isSkewed: true }, { min: 25, max: 25 }), {
  seed: 7,
  numRuns: 1,
});

test("the same steps and seed are the same history, line by line", async () => {
  const first = await playHistory(steps, { seed: 7, mounts: 2 });
  const second = await playHistory(steps, { seed: 7, mounts: 2 });
  expect(second).toEqual(first);
  expect(first.length).toBeGreaterThan(steps.length);
});

test("another seed is another history", async () => {
  const first = await playHistory(steps, { seed: 7, mounts: 2 });
  const other = await playHistory(steps, { seed: 8, mounts: 2 });
  expect(other).not.toEqual(first);
});
