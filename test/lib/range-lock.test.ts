/** Exclusive byte ranges: who overlaps waits its turn, who does not goes on. */
import { expect, test } from "vitest";
import { createRangeLock } from "../../src/lib/range-lock.ts";

async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await undefined;
}

test("ranges that do not overlap are held at once, others one after the other", async () => {
  const lock = createRangeLock();
  const first = await lock.hold(0, 10);
  const beside = await lock.hold(10, 20);
  let isIn = false;
  const across = lock.hold(5, 15).then((free) => {
    isIn = true;
    return free;
  });
  await settle();
  first();
  await settle();
  expect(isIn).toBe(false);
  beside();
  (await across)();
});

test("a large range is not passed over by small ones that come later", async () => {
  const lock = createRangeLock();
  const order: string[] = [];
  const first = await lock.hold(0, 10);
  const all = lock.hold(0, Number.POSITIVE_INFINITY).then((free) => {
    order.push("all");
    return free;
  });
  const later = lock.hold(20, 30).then((free) => {
    order.push("later");
    return free;
  });
  await settle();
  expect(order).toEqual([]);
  first();
  (await all)();
  (await later)();
  expect(order).toEqual(["all", "later"]);
});
