/** A mount, its daemon's death, its end and the next one: the shortest test of all of it together, with each release of Node. */
import { afterEach, beforeEach, test } from "vitest";
import { createPlace, type Place } from "../support/wsfs.ts";
import { isThereAgain } from "./support/there-again.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test("what was written is there after the daemon has died, and with the next mount", () => isThereAgain(place));
