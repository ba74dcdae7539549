/** The gateway's clock is told by its answers, whatever this machine's clock says. */
import { expect, test } from "vitest";
import { createGatewayClock } from "../../src/client/gateway-clock.ts";
import { elapsedTime, wallTime } from "../../src/lib/clocks.ts";

const TOLD = "Sun, 29 Nov 2026 00:00:00 GMT";
const told = Date.parse(TOLD);

test("this machine's clock until an answer comes; then the answer's, which no setting of the clock changes", () => {
  let now = 1_000;
  let elapsed = 50;
  const clock = createGatewayClock(
    () => wallTime(now),
    () => elapsedTime(elapsed),
  );
  expect(clock.now()).toBe(1_000);
  clock.hear(TOLD);
  expect(clock.now()).toBe(told);
  now += 3_600_000;
  elapsed += 10;
  expect(clock.now()).toBe(told + 10);
  clock.hear(TOLD);
  expect(clock.now()).toBe(told);
});

test.each([undefined, "", "soon"])("an answer with the date %s tells nothing", (date) => {
  const clock = createGatewayClock(
    () => wallTime(1_000),
    () => elapsedTime(50),
  );
  clock.hear(date);
  expect(clock.now()).toBe(1_000);
  clock.hear(TOLD);
  clock.hear(date);
  expect(clock.now()).toBe(told);
});
