/** Programs that ask without end: what is saved goes on its way all the same, and at full speed when they pause or somebody waits for it. */
import { expect, test } from "vitest";
import { begin, there } from "./support/one-world.ts";

const TIMEOUT = { timeout: 60_000 };
const FILES = 120;
/** The quiet that is waited for; see mount.ts. */
const DEBOUNCE_MS = 500;
/** A rest, and what an upload takes. */
const REST_MS = 2_000;
const EVERY_MS = 5;

async function busy(more: Parameters<typeof begin>[2] = {}) {
  const one = await begin(true, {}, more);
  const { world, mount } = one;
  let isOver = false;
  mount.weather.latencyMs = 20;
  const ask = () => {
    if (isOver) return;
    mount.process?.engine.fileSystem.attended(EVERY_MS, false);
    world.clock.setTimer(EVERY_MS, ask);
  };
  ask();
  // It is noticed at the first look.
  await one.save("first");
  await world.clock.advance(DEBOUNCE_MS + REST_MS);
  expect(await one.world.run(there(world)).then((tree) => tree.has("first"))).toBe(true);
  return {
    ...one,
    pause() {
      isOver = true;
    },
    arrived: async () => (await there(world)).size,
    async saveMany() {
      for (let index = 0; index < FILES; index += 1) await one.save(`file-${index}`);
    },
  };
}

test("under endless requests many go in turns, a few rows each, and all arrive", TIMEOUT, async () => {
  const { world, saveMany, arrived } = await busy({ settings: { maximumAgeMs: 60_000 } });
  await saveMany();
  await world.clock.advance(DEBOUNCE_MS + 1_000);
  expect(await arrived()).toBeLessThan(FILES / 2);
  const before = await arrived();
  await world.clock.advance(4_000);
  expect(await arrived()).toBeGreaterThan(before + 30);
  expect(await arrived()).toBeLessThan(FILES);
  await world.clock.advance(20_000);
  expect(await arrived()).toBe(FILES + 1);
});

test("looks for nothing but another turn try none of the nodes that wait for their name", TIMEOUT, async () => {
  const { world, metadata, saveMany, arrived, asked } = await busy({ settings: { maximumAgeMs: 60_000 } });
  const { nodes, arrivals } = metadata();
  const count = { looks: 0, tries: 0 };
  const { nextDue } = nodes;
  const { list } = arrivals;
  Object.assign(nodes, {
    nextDue() {
      count.looks += 1;
      return nextDue();
    },
  });
  Object.assign(arrivals, {
    list(after: string, limit: number) {
      count.tries += 1;
      return list(after, limit);
    },
  });
  await saveMany();
  await world.clock.advance(DEBOUNCE_MS);
  /** Within a rest: what was begun is done, what came of it told, and the next turn not begun. */
  const resting = { looks: 0, tries: 0 };
  let last = { looks: 0, tries: 0 };
  for (let still = 0, window = 0; window < 50; window += 1) {
    const before = { ...count, asked: asked.length };
    await world.clock.advance(100);
    still = asked.length === before.asked ? still + 1 : 0;
    if (still > 3) {
      resting.looks += last.looks;
      resting.tries += last.tries;
    }
    last = { looks: count.looks - before.looks, tries: count.tries - before.tries };
  }
  expect(await arrived()).toBeLessThan(FILES);
  expect(resting.looks).toBeGreaterThan(20);
  expect(resting.tries).toBe(0);
  // What ends wakes the loop for all there is.
  expect(count.tries).toBeGreaterThan(0);
});

test("under endless requests a file saved now and then is there soon after each save", TIMEOUT, async () => {
  const { world, save } = await busy();
  for (let round = 0; round < 20; round += 1) {
    await save(`round-${round}`);
    await world.clock.advance(DEBOUNCE_MS + REST_MS);
    expect((await there(world)).has(`round-${round}`)).toBe(true);
  }
});

test("when the programs pause, what waits goes at full speed", TIMEOUT, async () => {
  const { world, saveMany, arrived, pause } = await busy({ settings: { maximumAgeMs: 60_000 } });
  await saveMany();
  await world.clock.advance(DEBOUNCE_MS);
  pause();
  await world.clock.advance(2_000);
  expect(await arrived()).toBe(FILES + 1);
});

test("a drain has full speed while the programs go on", TIMEOUT, async () => {
  const { world, saveMany, drain } = await busy({ settings: { maximumAgeMs: 60_000 } });
  await saveMany();
  const begun = world.clock.elapsed();
  await drain();
  expect(world.clock.elapsed() - begun).toBeLessThan(3_000);
});

test("who waits for the gateway at each close waits for no turn", TIMEOUT, async () => {
  const { world, save } = await busy({ settings: { durability: "remote" } });
  const begun = world.clock.elapsed();
  for (let round = 0; round < 10; round += 1) await save(`round-${round}`);
  expect(world.clock.elapsed() - begun).toBeLessThan(10 * 350);
});
