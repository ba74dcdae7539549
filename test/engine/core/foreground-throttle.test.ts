/** How much is begun while programs are busy: numbers alone, on a clock that is moved by hand. */
import { expect, test } from "vitest";
import { createForegroundThrottle } from "../../../src/engine/core/foreground-throttle.ts";
import { elapsedTime } from "../../../src/lib/clocks.ts";

const LATE_MS = 10_000;
/** Of the time, that requests are at hand. */
const BUSY = 0.6;
const CALM = 0.05;

/** Rows that take `rowMs` of the thread each, without end; `lateMs` after they were due. */
function rows(rowMs: number, lateMs = 0) {
  let at = 0;
  const way = createForegroundThrottle({ elapsed: () => elapsedTime(at) }, LATE_MS);
  let doneAt = 0;
  let sent = 0;
  let waited = 0;
  let longest = 0;
  return {
    way,
    /** So many were begun meanwhile. */
    run(milliseconds: number, attended: number): number {
      const before = sent;
      for (const end = at + milliseconds; at < end; at += 1) {
        way.noteProgramTime(attended, true);
        const isQuiet = at >= doneAt;
        const begun = isQuiet ? Math.min(16, way.room(true)) : 0;
        waited = isQuiet && begun === 0 ? waited + 1 : 0;
        longest = Math.max(longest, waited);
        if (begun === 0) continue;
        way.begun(begun, lateMs);
        sent += begun;
        doneAt = at + begun * rowMs;
      }
      return sent - before;
    },
    longestMs: () => longest,
  };
}

test("while nobody asks anything, as much goes as can", () => {
  expect(rows(1).run(10_000, 0)).toBeGreaterThan(9_900);
});

test("a few requests take nothing away", () => {
  expect(rows(1).run(10_000, CALM)).toBeGreaterThan(9_900);
});

test.each([1, 3, 7])("under endless requests rows of %i ms get their small share, and no more", (rowMs) => {
  const { run, longestMs } = rows(rowMs);
  run(1_000, BUSY);
  const share = (run(60_000, BUSY) * rowMs) / 60_000;
  expect(share).toBeGreaterThan(0.08);
  expect(share).toBeLessThan(0.16);
  expect(longestMs()).toBeLessThanOrEqual(7 * 250);
});

test("the look that begins rows is part of their turn: the longer it takes, the longer the rest", () => {
  let at = 0;
  const way = createForegroundThrottle({ elapsed: () => elapsedTime(at) }, LATE_MS);
  const pass = (milliseconds: number) => {
    way.noteProgramTime(milliseconds * BUSY, false);
    at += milliseconds;
  };
  let worked = 0;
  for (; at < 60_000; pass(1)) {
    if (way.room(true) === 0) continue;
    const since = at;
    // Rows are looked at and written, and told of once that is committed.
    pass(20);
    way.begun(16, 0);
    pass(20);
    if (at > 1_000) worked += at - since;
  }
  expect(worked / 59_000).toBeLessThan(0.16);
});

test("rows that wait for a far gateway go at the same pace: no turn is far away", () => {
  let at = 0;
  const way = createForegroundThrottle({ elapsed: () => elapsedTime(at) }, LATE_MS);
  let begun = 0;
  for (; at < 60_000; at += 1) {
    way.noteProgramTime(BUSY, true);
    // Of a turn, never all is done.
    const room = way.room(false);
    if (at < 1_000 || room === 0) continue;
    way.begun(room, 0);
    begun += room;
  }
  expect(begun / 59).toBeGreaterThan(15);
});

test("what is late because more is made than turns can send gets half of the time", () => {
  const { run } = rows(3, LATE_MS + 1);
  run(1_000, BUSY);
  const share = (run(60_000, BUSY) * 3) / 60_000;
  expect(share).toBeGreaterThan(0.4);
  expect(share).toBeLessThan(0.6);
});

test("when programs pause it goes on at once, and makes way at once when they come back", () => {
  const { run } = rows(1);
  run(5_000, BUSY);
  // Noticed within some tens of milliseconds.
  expect(run(1_000, 0)).toBeGreaterThan(900);
  run(200, BUSY);
  expect(run(2_000, BUSY)).toBeLessThan(400);
});

test("while somebody waits for it, all goes at full speed; after that programs go first again", async () => {
  const { run, way } = rows(1);
  run(5_000, BUSY);
  let first = () => {};
  let second = () => {};
  const waits = [
    way.unthrottled(() => new Promise<void>((resolve) => (first = resolve))),
    way.unthrottled(() => new Promise<void>((_, reject) => (second = () => reject(new Error("given up"))))),
  ];
  expect(run(1_000, BUSY)).toBeGreaterThan(950);
  first();
  await waits[0];
  expect(run(1_000, BUSY)).toBeGreaterThan(950);
  second();
  await expect(waits[1]).rejects.toThrow("given up");
  run(200, BUSY);
  expect(run(2_000, BUSY)).toBeLessThan(400);
});

test("requests that wait for the gateway do not make us busy, unless they are many; those that wait for us do", () => {
  let at = 0;
  const way = createForegroundThrottle({ elapsed: () => elapsedTime(at) }, LATE_MS);
  const isBusy = (everyMs: number, mayAsk: boolean) => {
    for (const end = at + 1_000; at < end; at += everyMs) way.noteProgramTime(everyMs, mayAsk);
    return Number.isFinite(way.room(true));
  };
  expect(isBusy(30, true)).toBe(false);
  expect(isBusy(30, false)).toBe(true);
  expect(isBusy(30, true)).toBe(false);
  expect(isBusy(2, true)).toBe(true);
});
