/** `wsfs gateway` ends by a signal, whenever that comes. */
import { existsSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { finished, until } from "../support/child.ts";
import { createPlace, type Place } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

test("a signal that comes while the gateway starts ends it", async () => {
  const gateway = place.spawnWsfs(["gateway", "--data", "data", "--json"]);
  const ended = finished(gateway);
  await until("its database is made", () => existsSync(place.path("data/gateway.db")));
  gateway.kill("SIGTERM");
  expect(await ended).toMatchObject({ code: 0, signal: null });
});
