/** One piece of work for all who ask, for as long as somebody does. */
import { expect, test } from "vitest";
import { createSingleFlight, type NextCaller } from "../../src/lib/single-flight.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

const STANDS_MS = 1_000;
const GIVEN_UP = () => new Error("given up");

/** Work of endless steps, each of which takes a while; `finish` makes the next one the last. */
function begin() {
  const clock = createVirtualClock();
  const flights = createSingleFlight<string>(clock, STANDS_MS);
  const done = { begun: 0, steps: 0, isLast: false };
  const work = async (nextCaller: NextCaller) => {
    done.begun += 1;
    while (!done.isLast) {
      await nextCaller();
      done.steps += 1;
      await new Promise<void>((resolve) => clock.setTimer(10, resolve));
    }
  };
  const ask = () => {
    const signal = new AbortController();
    const answer = flights.run("key", work, signal.signal, GIVEN_UP);
    answer.catch(() => {});
    return { answer, leave: () => signal.abort() };
  };
  return { clock, flights, done, ask };
}

test("who asks while it runs waits for the same, and who gives up stops no other", async () => {
  const { clock, flights, done, ask } = begin();
  const [first, second] = [ask(), ask()];
  await clock.advance(50);
  first.leave();
  await expect(first.answer).rejects.toThrow("given up");
  const steps = done.steps;
  await clock.advance(50);
  expect(done.steps).toBeGreaterThan(steps + 2);
  done.isLast = true;
  await clock.advance(50);
  await second.answer;
  expect([done.begun, flights.size, flights.isRunning("key")]).toEqual([1, 0, false]);
});

test("left by all it stands still at once, goes on for the next who asks, and ends when nobody does", async () => {
  const { clock, flights, done, ask } = begin();
  const first = ask();
  await clock.advance(50);
  const steps = done.steps;
  first.leave();
  await clock.advance(STANDS_MS - 100);
  expect([done.steps, flights.isRunning("key")]).toEqual([steps, true]);
  const second = ask();
  await clock.advance(50);
  expect([done.begun, done.steps > steps]).toEqual([1, true]);
  second.leave();
  await clock.advance(STANDS_MS + 100);
  expect(flights.size).toBe(0);
  // The next one begins anew.
  done.isLast = true;
  const third = ask();
  await clock.advance(50);
  await third.answer;
  expect(done.begun).toBe(2);
});

test("one whose signal has aborted keeps nothing going", async () => {
  const { clock, flights, done } = begin();
  const work = async (nextCaller: NextCaller) => {
    for (;;) {
      await nextCaller();
      done.steps += 1;
      await new Promise<void>((resolve) => clock.setTimer(10, resolve));
    }
  };
  await expect(flights.run("key", work, AbortSignal.abort(), GIVEN_UP)).rejects.toThrow("given up");
  await clock.advance(2 * STANDS_MS);
  expect([done.steps <= 1, flights.size]).toEqual([true, 0]);
});
