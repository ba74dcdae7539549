/** When the journal is live, and what ends that: silence, sleep, a process that stood still, another timeline. */
import { expect, test } from "vitest";
import { createFreshness } from "../../../src/engine/host/index.ts";
import { millisecondsOf } from "../../../src/lib/clocks.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";

function start() {
  const clock = createVirtualClock();
  const ends: number[] = [];
  const fresh = createFreshness(clock);
  fresh.onEnd(() => ends.push(millisecondsOf(clock.elapsed())));
  const live = () => fresh.caughtUp(fresh.asking());
  return { clock, fresh, ends, live };
}

test("it begins with catching up, and lasts while something is heard", async () => {
  const { clock, fresh, ends, live } = start();
  fresh.heard();
  expect([fresh.isLive(), fresh.stale?.since]).toEqual([false, clock.wallClock()]);
  live();
  expect([fresh.isLive(), fresh.stale]).toEqual([true, undefined]);
  fresh.start();
  for (let beat = 0; beat < 10; beat += 1) {
    await clock.advance(10_000);
    fresh.heard();
  }
  expect([fresh.isLive(), ends]).toEqual([true, []]);
  fresh.stop();
});

test("silence of 30 seconds ends it, also when nobody asks; heartbeats alone do not bring it back", async () => {
  const { clock, fresh, ends, live } = start();
  fresh.start();
  live();
  await clock.advance(30_000);
  expect(ends).toEqual([]);
  await clock.advance(10_000);
  expect(ends).toHaveLength(1);
  const since = fresh.stale;
  expect(since?.why).toBe("nothing is heard of the journal");
  fresh.heard();
  expect([fresh.isLive(), fresh.stale]).toEqual([false, since]);
  live();
  expect(fresh.isLive()).toBe(true);
  expect(ends).toHaveLength(1);
  fresh.stop();
});

test.each([
  ["the machine slept: the wall clock is ahead", (clock: ReturnType<typeof createVirtualClock>) => clock.jump(60_000)],
  ["somebody set the clock back", (clock: ReturnType<typeof createVirtualClock>) => clock.jump(-60_000)],
  // Nothing was looked at meanwhile: no timer came.
  ["the process stood still", (clock: ReturnType<typeof createVirtualClock>) => clock.advance(20_000)],
])("a gap ends it, and an answer from before does not bring it back: %s", async (_, gap) => {
  const { clock, fresh, ends, live } = start();
  live();
  const before = fresh.asking();
  await gap(clock);
  expect([fresh.isLive(), ends.length]).toEqual([false, 1]);
  fresh.caughtUp(before);
  expect(fresh.isLive()).toBe(false);
  live();
  expect(fresh.isLive()).toBe(true);
});

test("a gap is noticed by what is heard after it", async () => {
  const { clock, fresh, ends, live } = start();
  live();
  clock.jump(60_000);
  fresh.heard();
  expect([fresh.isLive(), ends.length]).toEqual([false, 1]);
});

test("what came and is not applied ends it, whatever else is heard; applying some of it is progress", async () => {
  const { clock, fresh, ends, live } = start();
  fresh.start();
  live();
  const beats = async (count: number) => {
    for (let beat = 0; beat < count; beat += 1) {
      await clock.advance(5_000);
      fresh.heard();
    }
  };
  fresh.came();
  await beats(4);
  fresh.applied(false);
  await beats(4);
  fresh.came();
  fresh.applied(true);
  await beats(10);
  expect([fresh.isLive(), ends]).toEqual([true, []]);
  fresh.came();
  await beats(4);
  fresh.came();
  await beats(4);
  expect([fresh.isLive(), ends.length]).toEqual([false, 1]);
  await beats(4);
  expect(fresh.isLive()).toBe(false);
  live();
  await beats(10);
  expect([fresh.isLive(), ends.length]).toEqual([true, 1]);
  fresh.stop();
});
