/** The time of the rows goes on evenly whoever sets the clock, for all daemons of one boot of the machine. */
import { expect, test } from "vitest";
import { parseRequest } from "../../../src/engine/core/index.ts";
import { createRowClock } from "../../../src/engine/host/index.ts";
import { minus, plus, rowTime } from "../../../src/lib/clocks.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import { createMetadata } from "../../../src/metadata/metadata.ts";
import { createMemoryFiles } from "../../support/memory-files.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";

const HOUR = 3_600_000;

function machine() {
  const clock = createVirtualClock();
  const metadata = createMetadata(openDatabase(":memory:"), parseRequest);
  const files = createMemoryFiles({ now: () => ({ seconds: 0, nanoseconds: 0 }) });
  const start = (boot: string, isKept = true) => {
    const time = createRowClock({ ...clock, files }, metadata, boot);
    if (isKept) time.keep();
    return time.runtime;
  };
  return { clock, metadata, start };
}

test.each([HOUR, -HOUR])(
  "the clock is set by %i ms: it goes on evenly, what is shown follows the clock",
  async (by) => {
    const { clock, start } = machine();
    const runtime = start("boot");
    const begun = clock.wallClock();
    expect(runtime.now()).toBe(begun);
    await clock.advance(1_500.5);
    clock.jump(by);
    expect([runtime.now(), runtime.wallClock()]).toEqual([begun + 1_500, begun + 1_500 + by]);
  },
);

test.each([HOUR, -HOUR])("set by %i ms while no daemon was there: the next one goes on with it", async (by) => {
  const { clock, start } = machine();
  const begun = start("boot").now();
  clock.jump(by);
  await clock.advance(1_000);
  expect(start("boot").now()).toBe(plus(begun, 1_000));
});

test.each([0, 8 * HOUR, -HOUR])(
  "another boot, the wall clock %i ms off: it goes on where the rows end, and what waits is looked at",
  async (by) => {
    const { clock, metadata, start } = machine();
    const before = start("boot");
    await clock.advance(5 * HOUR);
    const happened = before.now();
    metadata.transaction(() => {
      metadata.rereads.add("node");
      const [reread] = metadata.rereads.due(happened, 1);
      if (reread !== undefined) metadata.rereads.missing(reread, happened, plus(happened, HOUR));
    });
    clock.jump(by);
    const now = start("another boot").now();
    expect(minus(now, happened)).toBeGreaterThanOrEqual(0);
    expect(minus(now, happened)).toBeLessThanOrEqual(1_000);
    expect(metadata.rereads.missingSince("node")).toBe(happened);
    expect(metadata.rereads.due(now, 1)).toHaveLength(1);
    await clock.advance(1_500);
    expect(start("another boot").now()).toBe(plus(now, 1_500));
  },
);

test("whatever a commit says happened, another boot is no earlier and at most a second later", async () => {
  const { clock, metadata, start } = machine();
  for (let boot = 0; boot < 20; boot += 1) {
    const runtime = start(`boot ${boot}`);
    let happened = runtime.now();
    for (const after of [1, 400, 998, 1, 1_000, boot * 97]) {
      await clock.advance(after);
      happened = runtime.now();
      metadata.transaction(() => metadata.settings.set("cursor", String(happened)));
    }
    const later = minus(start(`boot ${boot + 1}`).now(), happened);
    expect(later).toBeGreaterThanOrEqual(0);
    expect(later).toBeLessThanOrEqual(1_000);
  }
});

test("rows of a release that had the wall clock's time: none is later than now", () => {
  const { clock, metadata, start } = machine();
  const then = clock.wallClock() + HOUR;
  metadata.transaction(() => {
    metadata.rereads.add("node");
    const [reread] = metadata.rereads.due(rowTime(then), 1);
    if (reread !== undefined) metadata.rereads.missing(reread, rowTime(then), rowTime(then));
  });
  const now = start("boot").now();
  expect(now).toBe(clock.wallClock());
  expect(metadata.rereads.missingSince("node")).toBe(now);
  expect(metadata.rereads.due(now, 1)).toHaveLength(1);
});

test("people are shown how long ago it was: what the machine slept since counts, and what the clock was set by does not", async () => {
  const { clock, metadata, start } = machine();
  const commit = () => metadata.transaction(() => metadata.settings.set("cursor", String(clock.elapsed())));
  const runtime = start("boot");
  await clock.advance(5_000);
  const first = runtime.now();
  commit();
  clock.sleep(8 * HOUR);
  expect(runtime.ageOf(first)).toBe(8 * HOUR);
  await clock.advance(500);
  // Right after it woke, and no second after the last commit.
  const second = runtime.now();
  commit();
  clock.jump(3 * HOUR);
  expect([first, second].map(runtime.ageOf)).toEqual([8 * HOUR + 500, 0]);
  clock.sleep(HOUR);
  // Nothing was written since: the next daemon finds out.
  const next = start("boot");
  await clock.advance(1_000);
  expect([first, second].map(next.ageOf)).toEqual([9 * HOUR + 1_500, HOUR + 1_000]);
  commit();
  expect([first, second, next.now()].map(next.ageOf)).toEqual([9 * HOUR + 1_500, HOUR + 1_000, 0]);
});

test("what the machine was off for counts once, by the wall clock, even if the first start after it comes to nothing", async () => {
  const { clock, metadata, start } = machine();
  await clock.advance(5_000);
  const before = start("boot");
  const happened = before.now();
  metadata.transaction(() => metadata.settings.set("cursor", "1"));
  clock.jump(10 * HOUR);
  for (const isKept of [false, false, true, true]) {
    const age = start("another boot", isKept).ageOf(happened);
    expect(age).toBeGreaterThanOrEqual(10 * HOUR);
    // Each of them begins up to a second later.
    expect(age).toBeLessThanOrEqual(10 * HOUR + 5_000);
    // Of a start that then failed.
    metadata.transaction(() => metadata.settings.set("cursor", String(isKept)));
  }
  clock.jump(-20 * HOUR);
  const age = start("a boot with the clock set back").ageOf(happened);
  expect(age).toBeGreaterThanOrEqual(10 * HOUR);
  expect(age).toBeLessThanOrEqual(10 * HOUR + 6_000);
});

test("of many pauses the older ones are kept together", async () => {
  const { clock, metadata, start } = machine();
  const runtime = start("boot");
  const first = runtime.now();
  for (let day = 0; day < 100; day += 1) {
    metadata.transaction(() => metadata.settings.set("cursor", String(day)));
    clock.sleep(HOUR);
    await clock.advance(2_000);
  }
  expect(runtime.ageOf(first)).toBe(100 * HOUR + 200_000);
  expect(metadata.settings.get("pauses")?.length).toBeLessThan(1_000);
});
