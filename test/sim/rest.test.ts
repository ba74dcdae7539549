/** A mount at rest is woken once a second, for all that looks at something every so often, and by what the stream tells. */

import { expect, test } from "vitest";
import { HEARTBEAT_MS } from "../../src/contract/http.ts";
import { watchTokens } from "../../src/daemon/notice-tokens.ts";
import { stayFound } from "../../src/daemon/stay-found.ts";
import { SILENT } from "../../src/lib/log.ts";
import { every } from "../../src/lib/runtime.ts";
import type { VirtualClock } from "../support/virtual-clock.ts";
import { ALL_ARRIVED_MS, begin } from "./support/one-world.ts";

const REST_MS = 60_000;
/** Of the gateway's stream. */

/** When timers fire, from now on. */
function firings(clock: VirtualClock): Set<number> {
  const times = new Set<number>();
  const { setTimer } = clock;
  clock.setTimer = (milliseconds, callback) =>
    setTimer(milliseconds, () => {
      times.add(clock.elapsed());
      callback();
    });
  return times;
}

test("a mount at rest is woken no more than once a second, and for what the stream tells", async () => {
  const it = await begin(true);
  const { clock } = it.world;
  const runtime = () => it.mount.process?.engine.context.runtime ?? clock;
  for (const name of ["a", "b", "c"]) await it.save(name);
  await it.drain();
  const ends = [];
  // Each begins some time after the other.
  ends.push(every(runtime(), 1_000, () => {}).cancel);
  await clock.advance(337);
  ends.push(stayFound({ isThere: () => true, makeAgain: async () => {} }, runtime(), SILENT));
  await clock.advance(337);
  ends.push(watchTokens({ token: async () => "token" }, runtime()));
  await clock.advance(ALL_ARRIVED_MS);
  const { context } = it.mount.process?.engine ?? {};
  expect([context?.fresh.isLive(), context?.activity.conflicts]).toEqual([true, 0]);
  const fired = firings(clock);
  // What was begun before is over by then.
  await clock.advance(2 * HEARTBEAT_MS);
  fired.clear();
  await clock.advance(REST_MS);
  expect(fired.size).toBeGreaterThan(0);
  expect(fired.size).toBeLessThanOrEqual(REST_MS / 1_000 + REST_MS / HEARTBEAT_MS);
  for (const end of ends) await end();
});
