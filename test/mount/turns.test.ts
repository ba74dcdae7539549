/** Two mounts of one workspace, edited in turn behind late listings: after each turn both show the same. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChance } from "../support/seed.ts";
import { createPlace, type Place } from "../support/wsfs.ts";
import { takeTurns } from "./support/turns.ts";

const TURNS = 4;
const KILLED = 1;

let place: Place;
beforeAll(() => {
  place = createPlace();
});
afterAll(() => place.cleanUp());

test("edits in turn, and a daemon killed in one of them", { timeout: 900_000 }, async () => {
  const goesOn = (turns: number) => turns < TURNS;
  expect(await takeTurns(place, { chance: createChance(), goesOn, isKilled: (turn) => turn === KILLED })).toBe(TURNS);
});
