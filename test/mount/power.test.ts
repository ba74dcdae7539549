/**
 * Power cuts of a recorded daemon at work: what programs were told is there, nothing half-written
 * goes over a head. More of them are `npm run soak -- power`.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { chooseCuts, cutAt, unrecorded } from "../support/power/cuts.ts";
import { record } from "../support/power/record.ts";
import { createPlace, type Place } from "../support/wsfs.ts";

const SEED = 1;

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test.each([
  { durability: "local", rounds: 4, cuts: 42 },
  { durability: "remote", rounds: 2, cuts: 12 },
] as const)("$cuts cuts, durability $durability", { timeout: 900_000 }, async ({ durability, rounds, cuts }) => {
  const recording = await record(place, { seed: SEED, rounds, durability });
  expect(unrecorded(recording)).toEqual([]);
  const wrong: string[] = [];
  await cutAt(recording, chooseCuts(recording, cuts, SEED), ({ at, seed }, { data, names }, problems) => {
    for (const problem of problems) wrong.push(`at ${at}, seed ${seed}, data ${data}, names ${names}: ${problem}`);
  });
  expect(wrong).toEqual([]);
});
