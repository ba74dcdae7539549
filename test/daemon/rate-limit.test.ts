import { expect, it } from "vitest";
import { rateLimit } from "../../src/daemon/rate-limit.ts";
import { elapsedTime } from "../../src/lib/clocks.ts";

it("lets so many happen within a time, and again when the first of them is long ago", () => {
  let now = 1000;
  const may = rateLimit(2, 60, () => elapsedTime(now));
  expect([may(), may(), may()]).toEqual([true, true, false]);
  now += 59;
  expect(may()).toBe(false);
  now += 1;
  expect([may(), may(), may()]).toEqual([true, true, false]);
  for (let minutes = 0; minutes < 100; minutes++) {
    now += 60;
    expect(may()).toBe(true);
  }
});

it("lets none happen when none may", () => {
  expect(rateLimit(0, 60, () => elapsedTime(0))()).toBe(false);
});
