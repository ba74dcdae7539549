/** What looks every so often is woken with all others that do, never twice for one look and never much later. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { elapsedTime, millisecondsOf } from "../../src/lib/clocks.ts";
import { every, inStep } from "../../src/lib/runtime.ts";
import { SEED } from "../support/seed.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

test("the wait ends at a whole multiple, from a half to one and a half of what was asked for", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), fc.integer({ min: 10, max: 60_000 }), (at, period) => {
      const wait = inStep({ elapsed: () => elapsedTime(at) }, period);
      expect(Number.isInteger(wait)).toBe(true);
      expect(wait).toBeGreaterThanOrEqual(period / 2);
      expect(wait).toBeLessThanOrEqual(1.5 * period + 1);
      const past = (at + wait) % period;
      expect(Math.min(past, period - past)).toBeLessThanOrEqual(1.001);
    }),
    { seed: SEED },
  );
});

test("begun at any time, all are called at the same moments, also by timers that are early or late, until they are ended", async () => {
  const clock = createVirtualClock();
  const times: number[][] = [[], [], []];
  const ends: (() => void)[] = [];
  for (const [index, period] of [1_000, 1_000, 2_000].entries()) {
    // As Node's, which are a little early or late.
    let count = 0;
    const setTimer = (milliseconds: number, callback: () => void) => {
      count += 1;
      return clock.setTimer(milliseconds + 0.4 - (count % 3) * 0.4, callback);
    };
    const note = () => times[index]?.push(Math.round(millisecondsOf(clock.elapsed()) / 100) * 100);
    ends.push(every({ elapsed: clock.elapsed, setTimer }, period, note).cancel);
    await clock.advance(391);
  }
  await clock.advance(9_000);
  for (const end of ends) end();
  await clock.advance(9_000);
  const seconds = (first: number, step: number) => Array.from({ length: 20 }, (_, i) => 1_000 * (first + i * step));
  const upTo = (all: number[]) => all.filter((time) => time <= 10_173);
  expect(times).toEqual([upTo(seconds(1, 1)), upTo(seconds(1, 1)), upTo(seconds(2, 2))]);
});
