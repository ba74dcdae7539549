/**
 * Histories on gateways that lack one thing, or all: nothing finished is lost, all agree in the end,
 * and a mount alone is a plain folder throughout. What cannot hold there is in src/gateway/BARE.md.
 */
import { afterAll, expect, test } from "vitest";
import { FEATURE_NAMES } from "../../src/contract/features.ts";
import { playHistory } from "./history.ts";
import type { Sabotage } from "./mount.ts";
import { playHistories, runSettings } from "./run.ts";
import type { Step } from "./steps.ts";
import { createTally, describeTally } from "./tally.ts";
import { LESSER } from "./worlds.ts";

const tally = createTally();

afterAll(() => console.log(`simulation of lesser gateways:\n${describeTally(tally)}`));

for (const { name, options } of LESSER) {
  test(name, { timeout: 600_000 }, async () => {
    const failure = await playHistories({ ...options, ...runSettings(50, 1), tally });
    expect(failure?.text).toBeUndefined();
  });
}

/** Removed, and for eight seconds still in every list. */
const LATE_LISTING: readonly Step[] = [
  { do: "lag", path: 8_000, journal: 0, id: 0 },
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
  { do: "run", mount: 0, program: { do: "save", path: "b", size: 20 } },
  { do: "wait", ms: 12_000 },
  { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
  { do: "wait", ms: 12_000 },
];

test("what was removed does not come back with a late list; without its echo it would", async () => {
  const options = { mounts: 1, seed: 1, lacks: FEATURE_NAMES, hasKeys: true } as const;
  await playHistory(LATE_LISTING, options);
  const sabotage: Sabotage = {
    engine: ({ context }) => void Object.assign(context.metadata.vacated, { isHeard: () => false }),
  };
  await expect(playHistory(LATE_LISTING, { ...options, sabotage })).rejects.toThrow(/the mount has it|is back after/);
});
