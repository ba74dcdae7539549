/** Two mounts of one workspace edited at the same time, while a daemon and the gateway are killed; `npm run soak -- parallel` has more of it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChance } from "../support/seed.ts";
import { createPlace, type Place } from "../support/wsfs.ts";
import { editInParallel } from "./support/parallel.ts";

/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);
const EDITS = 40;

let place: Place;
beforeAll(() => {
  place = createPlace();
});
afterAll(() => place.cleanUp());

test("both and the gateway end in agreement, and nothing acknowledged is lost", { timeout: 900_000 }, async () => {
  const options = { chance: createChance(), mounts: 2, edits: EDITS, rounds: [["daemon", "gateway"]] as const };
  const counts = await editInParallel(place, { ...options, port: PORT, isReplaced: false });
  expect(counts).toMatchObject({ rounds: 1, killed: { daemon: 1, supervisor: 0, gateway: 1 } });
});
