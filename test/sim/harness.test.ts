/** The simulation itself: the same seed is the same history, and what it is there to catch is caught. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { playHistory } from "./history.ts";
import { type Step, stepsOf } from "./steps.ts";

const [steps = []] = fc.sample(stepsOf({ mounts: 2, isOutside: true }, { min: 25, max: 25 }), {
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

test("a process that dies leaves nothing behind: however many do, no signal has more listeners than calls", async () => {
  const death: Step = { do: "crash", mount: 0, program: { do: "read", path: "a" }, ticks: 3, ms: 0 };
  const warnings: string[] = [];
  const warned = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`);
  process.on("warning", warned);
  try {
    await playHistory([{ do: "lag", path: 0, journal: 0, id: 0 }, ...Array<Step>(15).fill(death)], {
      seed: 1,
      mounts: 2,
    });
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", warned);
  }
  expect(warnings).toEqual([]);
});
