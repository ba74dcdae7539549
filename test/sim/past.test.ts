/**
 * The past of a workspace. Random histories of two mounts, recorded at the gateway change by change: the history folder
 * shows every moment, version and deletion as they were, a tree goes back to any moment, and what one mount did is
 * undone and redone. Then the past of a moment ago: what lists do not show yet, and lists that were kept, offline.
 */
import { expect, test } from "vitest";
import { atMoment } from "./support/past-read.ts";
import { readFile } from "./support/tree.ts";
import { beginTwo } from "./support/two-world.ts";
import { PAST, playKind } from "./support/worlds.ts";

test(PAST.name, { timeout: 600_000 }, async () => {
  expect(await playKind(PAST, 40)).toBeUndefined();
});

const LAG = { path: 8_000, journal: 0, id: 0 };

test("offline, a list that was kept does not prove that a later name is absent", async () => {
  const { world, alpha, calls, run, drain } = await beginTwo();
  await run(alpha, { do: "save", path: "a", size: 20 }, "first");
  await drain(alpha);
  const versions = (name: string) => `.wsfs/versions/${name}`;
  const there = calls(alpha);
  expect(await world.run(there.list(versions("")))).toEqual(["a"]);
  await run(alpha, { do: "save", path: "b", size: 20 }, "b");
  await drain(alpha);
  alpha.weather.isOffline = true;
  await world.clock.advance(60_000);
  expect(await world.run(there.list(versions("")))).toEqual(["a"]);
  await expect(world.run(there.list(versions("b")))).rejects.toMatchObject({ code: "EIO" });
  world.end();
});

test.each([
  { name: "the clock is right", skewMs: 0 },
  // By its own clock, the moment is long ago.
  { name: "the clock is an hour ahead", skewMs: 3_600_000 },
  { name: "the clock is an hour behind", skewMs: -3_600_000 },
])("a moment that lists have not reached yet is shown right: $name", async ({ skewMs }) => {
  const { world, alpha, beta, calls, run, drain } = await beginTwo();
  await run(alpha, { do: "save", path: "a", size: 20 }, "first");
  await drain(alpha);
  await world.clock.advance(60_000);
  beta.skewMs = skewMs;
  world.setLag(LAG);
  await run(alpha, { do: "save", path: "a", size: 20 }, "second");
  await run(alpha, { do: "save", path: "b", size: 20 }, "b");
  await world.clock.advance(4_000);
  const moment = atMoment(world.clock.wallClock());
  const shown = async () => {
    const names = await world.run(calls(beta).list(moment));
    const text = (await world.run(readFile(calls(beta), `${moment}/a`))).toString();
    return [names, text.slice(0, text.indexOf(";"))];
  };
  expect(await shown()).toEqual([["a"], "first"]);
  await world.clock.advance(10_000);
  expect(await shown()).toEqual([["a", "b"], "second"]);
  beta.weather.isOffline = true;
  expect(await shown()).toEqual([["a", "b"], "second"]);
  world.end();
});
