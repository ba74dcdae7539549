/**
 * Histories on gateways that lack one thing, or all: nothing finished is lost, all agree in the end,
 * and a mount alone is a plain folder throughout. What cannot hold there is in docs/gateway/profiles.md.
 */
import { afterAll, expect, test } from "vitest";
import { FEATURE_NAMES } from "../../src/contract/features.ts";
import type { InodeId } from "../../src/metadata/ids.ts";
import { playHistory } from "./support/history.ts";
import type { Sabotage } from "./support/mount.ts";
import { playHistories, runSettings } from "./support/run.ts";
import type { Step } from "./support/steps.ts";
import { createTally, describeTally } from "./support/tally.ts";
import { LESSER } from "./support/worlds.ts";

const tally = createTally();

afterAll(() => console.log(`simulation of lesser gateways:\n${describeTally(tally)}`));

for (const { name, options } of LESSER) {
  test(name, { timeout: 600_000 }, async () => {
    const failure = await playHistories({ ...options, ...runSettings(30, 1), tally });
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

/** Beta's lists are not answered from before alpha's last save until shortly before the end. */
const UNANSWERED_LIST: readonly Step[] = [
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
  { do: "wait", ms: 4_000 },
  { do: "run", mount: 1, program: { do: "list", path: "" } },
  { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 1 },
  { do: "wait", ms: 2_000 },
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 30 } },
];

test("a mount whose list is not answered is waited for; one that does not list again is not", async () => {
  const options = { mounts: 2, seed: 1, lacks: ["journal"], faults: ["silent-before"], hasKeys: true } as const;
  await playHistory(UNANSWERED_LIST, options);
  const sabotage: Sabotage = {
    engine({ context: { listings, metadata } }) {
      const run = listings.run.bind(listings);
      const isKnown = (folder: InodeId) => metadata.inodes.get(folder)?.listed != null;
      const onlyOnce: typeof run = (folder, ...asked) => (isKnown(folder) ? Promise.resolve() : run(folder, ...asked));
      Object.assign(listings, { run: onlyOnce });
    },
  };
  await expect(playHistory(UNANSWERED_LIST, { ...options, sabotage })).rejects.toThrow(/does not list folder/);
});
