/**
 * A daemon that dies is replaced, and programs see a pause. Here at some of the places where it may die; at all of
 * them in `npm run soak -- restart`.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { check, createPlace, type Place } from "../support/wsfs.ts";
import { armed, dieInTurn } from "./support/restart.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test("a program that makes every change sees no death of the daemon", { timeout: 300_000 }, async () => {
  const gateway = await place.gateway();
  const file = armed(place);
  const mount = await place.mount(gateway);
  const deaths = await dieInTurn(place, mount, file, [61]);
  const count = [...deaths.values()].reduce((sum, one) => sum + one, 0);
  expect(count).toBeGreaterThan(5);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  expect(await mount.status()).toMatchObject({ dirty: 0, parked: 0, conflicts: 0 });
});
