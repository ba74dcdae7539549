/** How many requests are in flight, and whose turn it is: numbers alone. */
import { expect, test } from "vitest";
import { BULK, BULK_BYTES, createLanes, laneOf, SMALL } from "../../src/vfs/lanes.ts";
import { createLimit } from "../../src/vfs/limit.ts";

/** A gateway that works on `places` requests at once, each `workMs` long, `wayMs` away: what an answer takes with so many in flight. */
const gateway = (wayMs: number, workMs: number, places: number) => (inFlight: number) =>
  wayMs + workMs * Math.max(1, inFlight / places);

function settle(takes: (inFlight: number) => number, answers: number, first = 8, most = 32) {
  const limit = createLimit(first, most);
  let at = 0;
  for (let answer = 0; answer < answers; answer += 1) {
    const took = takes(limit.value);
    at += took / limit.value;
    limit.answered(at, took, true);
  }
  return limit;
}

test("with a gateway that is far and fast, the limit grows to the most", () => {
  expect(settle(gateway(100, 1, 64), 2_000).value).toBe(32);
});

test("where requests wait in a line there, the limit stays where the line is short", () => {
  const limit = createLimit(8, 32);
  // Alone, an answer takes 1 ms; of more, each waits for all others.
  limit.answered(0, 1, false);
  for (let answer = 0; answer < 500; answer += 1) limit.answered(answer, limit.value, true);
  expect(limit.value).toBeGreaterThanOrEqual(4);
  expect(limit.value).toBeLessThan(12);
});

test("a limit that is not used does not grow", () => {
  const limit = createLimit(8, 32);
  for (let answer = 0; answer < 500; answer += 1) limit.answered(answer, 10, false);
  expect(limit.value).toBe(8);
});

test("too much halves it once for all that were in flight together, down to one, and it comes back", () => {
  const limit = createLimit(16, 32);
  for (let refusal = 0; refusal < 16; refusal += 1) limit.tooMuch(5, 10 + refusal);
  expect(limit.value).toBe(8);
  for (let refusal = 1; refusal < 9; refusal += 1) limit.tooMuch(100 * refusal, 100 * refusal + 10);
  expect(limit.value).toBe(1);
  for (let answer = 0; answer < 2_000; answer += 1) limit.answered(10_000 + answer, 100, true);
  expect(limit.value).toBe(32);
});

test("bulk takes at most half, small things never wait for it, and each lane always has a place", () => {
  expect([laneOf(0), laneOf(BULK_BYTES - 1), laneOf(BULK_BYTES)]).toEqual([SMALL, SMALL, BULK]);
  for (let limit = 1; limit <= 16; limit += 1) {
    const lanes = createLanes();
    while (lanes.room(BULK, limit) > 0) lanes.enter(BULK);
    expect(lanes.inFlight).toBe(Math.max(1, Math.floor(limit / 2)));
    expect(lanes.room(SMALL, limit)).toBeGreaterThan(0);
    while (lanes.room(SMALL, limit) > 0) lanes.enter(SMALL);
    expect(lanes.inFlight).toBeLessThanOrEqual(Math.max(2, limit));
  }
});

test("small things that never end leave bulk its place", () => {
  const lanes = createLanes();
  while (lanes.room(SMALL, 4) > 0) lanes.enter(SMALL);
  expect(lanes.inFlight).toBe(4);
  expect(lanes.room(BULK, 4)).toBe(1);
  lanes.enter(BULK);
  expect([lanes.room(BULK, 4), lanes.room(SMALL, 4)]).toEqual([0, 0]);
  // As small ones end, bulk gets no more than its share of what is free.
  lanes.leave(SMALL);
  lanes.leave(SMALL);
  expect(lanes.room(BULK, 4)).toBe(1);
});
