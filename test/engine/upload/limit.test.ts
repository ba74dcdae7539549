/** How many requests are in flight, and whose turn it is: numbers alone. */
import { expect, test } from "vitest";
import { createConcurrencyLimit } from "../../../src/engine/upload/concurrency-limit.ts";
import { BULK_BYTES, createSlots, priorityOf, type Slot, type Slots } from "../../../src/engine/upload/slots.ts";
import { elapsedTime } from "../../../src/lib/clocks.ts";
import type { Priority } from "../../../src/metadata/priority.ts";

/** A gateway that works on `places` requests at once, each `workMs` long, `wayMs` away: what an answer takes with so many in flight. */
const gateway = (wayMs: number, workMs: number, places: number) => (inFlight: number) =>
  wayMs + workMs * Math.max(1, inFlight / places);

function limitAfter(takes: (inFlight: number) => number, answers: number, first = 8, most = 32) {
  const limit = createConcurrencyLimit(first, most);
  let at = 0;
  for (let answer = 0; answer < answers; answer += 1) {
    const took = takes(limit.value);
    at += took / limit.value;
    limit.answered(elapsedTime(at), took, true, 0);
  }
  return limit;
}

test("with a gateway that is far and fast, the limit grows to the most", () => {
  expect(limitAfter(gateway(100, 1, 64), 2_000).value).toBe(32);
});

test("where answers wait for this thread, which is busy, that is no line at the gateway", () => {
  const limit = createConcurrencyLimit(8, 32);
  limit.answered(elapsedTime(0), 1, false, 0);
  for (let answer = 1; answer < 2_000; answer += 1)
    limit.answered(elapsedTime(answer), limit.value, true, 0.9 * answer);
  expect(limit.value).toBe(32);
  // It is not busy any more, and it takes as long.
  for (let answer = 2_000; answer < 6_000; answer += 1) limit.answered(elapsedTime(answer), limit.value, true, 1_800);
  expect(limit.value).toBeLessThan(12);
});

test("where requests wait in a line there, the limit stays where the line is short", () => {
  const limit = createConcurrencyLimit(8, 32);
  // Alone, an answer takes 1 ms; of more, each waits for all others.
  limit.answered(elapsedTime(0), 1, false, 0);
  for (let answer = 0; answer < 500; answer += 1) limit.answered(elapsedTime(answer), limit.value, true, 0);
  expect(limit.value).toBeGreaterThanOrEqual(4);
  expect(limit.value).toBeLessThan(12);
});

test("a limit that is not used does not grow", () => {
  const limit = createConcurrencyLimit(8, 32);
  for (let answer = 0; answer < 500; answer += 1) limit.answered(elapsedTime(answer), 10, false, 0);
  expect(limit.value).toBe(8);
});

test("too much halves it once for all that were in flight together, down to one, and it comes back", () => {
  const limit = createConcurrencyLimit(16, 32);
  for (let refusal = 0; refusal < 16; refusal += 1) limit.tooMuch(elapsedTime(5), elapsedTime(10 + refusal));
  expect(limit.value).toBe(8);
  for (let refusal = 1; refusal < 9; refusal += 1)
    limit.tooMuch(elapsedTime(100 * refusal), elapsedTime(100 * refusal + 10));
  expect(limit.value).toBe(1);
  for (let answer = 0; answer < 2_000; answer += 1) limit.answered(elapsedTime(10_000 + answer), 100, true, 0);
  expect(limit.value).toBe(32);
});

/** As many as may enter ask for their turn; those that have it. */
async function fill(slots: Slots, priority: Priority): Promise<Slot[]> {
  const out: Slot[] = [];
  while (slots.room(priority) > 0) {
    const slot = slots.enter(priority);
    void slot.turn().then((isTurn) => isTurn && out.push(slot));
  }
  await Promise.resolve();
  return out;
}

test("bulk takes at most half, or eight; small things never wait for it, and each class always has a slot", async () => {
  expect([priorityOf(0), priorityOf(BULK_BYTES - 1), priorityOf(BULK_BYTES)]).toEqual(["small", "small", "bulk"]);
  for (let limit = 1; limit <= 32; limit += 1) {
    const slots = createSlots(() => limit);
    await fill(slots, "bulk");
    expect(slots.out).toBe(Math.max(1, Math.min(8, Math.floor(limit / 2))));
    await fill(slots, "small");
    expect(slots.out).toBe(Math.max(2, limit));
  }
});

test("small things that never end leave bulk its slot, and its share of what is free", async () => {
  const slots = createSlots(() => 4);
  const small = await fill(slots, "small");
  expect([small.length, slots.out, slots.room("small")]).toEqual([4, 4, 0]);
  expect((await fill(slots, "bulk")).length).toBe(1);
  // Of those that wait bulk goes first, to its half; the rest is for what waits to be small.
  for (const slot of small) slot.leave();
  await Promise.resolve();
  expect([slots.out, slots.room("bulk")]).toEqual([4, 0]);
});

test("who enters goes out in order, and one that gives up while it waits leaves its turn to the next", async () => {
  const slots = createSlots(() => 1);
  const turns: string[] = [];
  const enter = (name: string) => {
    const slot = slots.enter("small");
    void slot.turn().then((isTurn) => turns.push(`${name}: ${isTurn}`));
    return slot;
  };
  const first = enter("first");
  const second = enter("second");
  enter("third");
  await Promise.resolve();
  first.stop();
  second.stop();
  second.leave();
  await Promise.resolve();
  expect(turns).toEqual(["first: true", "second: false"]);
  first.leave();
  first.leave();
  await Promise.resolve();
  expect([turns.at(-1), slots.out]).toEqual(["third: true", 1]);
});

test("one that never had its turn leaves no slot free that is taken", async () => {
  const slots = createSlots(() => 1);
  const out = slots.enter("small");
  await out.turn();
  slots.enter("small").leave();
  expect([slots.out, slots.isFull]).toEqual([1, true]);
});

test("one that is stopped before it asks for its turn has none", async () => {
  const slots = createSlots(() => 1);
  const slot = slots.enter("small");
  slot.stop();
  expect([await slot.turn(), slots.out]).toEqual([false, 0]);
});
