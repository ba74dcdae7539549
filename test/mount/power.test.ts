/**
 * Power cuts of a daemon that was recorded at work (test/support/power): whatever was not synced is
 * lost, kept, torn or out of order; what fsync promised is there, and no version is made of anything
 * that no program ever left. More of them: `npm run soak -- power`.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cut, chooseCuts, cutAt, unrecorded } from "../support/power/cuts.ts";
import { type Recording, record } from "../support/power/record.ts";
import { SEED } from "../support/seed.ts";
import { createPlace, type Place } from "../support/wsfs.ts";

const CUTS = 200;
const ROUNDS = 10;

let place: Place;
let recording: Recording;
beforeAll(async () => {
  place = createPlace();
  recording = await record(place, { seed: SEED, rounds: ROUNDS });
});
afterAll(() => place.cleanUp());

test("the record is complete: it leads to exactly the bytes that are there", () => {
  expect(unrecorded(recording)).toEqual([]);
});

test(`${CUTS} power cuts keep every promise`, async () => {
  const wrong: { cut: Cut; problems: string[] }[] = [];
  await cutAt(recording, chooseCuts(recording, CUTS, SEED), (cut, fate, problems) => {
    if (problems.length > 0) wrong.push({ cut, ...fate, problems });
  });
  expect(wrong).toEqual([]);
});
