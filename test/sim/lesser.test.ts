/**
 * Histories on gateways that lack one thing, or all: nothing finished is lost, all agree in the end,
 * and a mount alone is a plain folder throughout. What cannot hold there is in src/gateway/BARE.md.
 */
import { expect, test } from "vitest";
import { FEATURE_NAMES, type Feature } from "../../src/contract/features.ts";
import { playHistory } from "./history.ts";
import type { Sabotage } from "./mount.ts";
import { playHistories, runSettings } from "./run.ts";
import type { Step } from "./steps.ts";
import { FAULTS } from "./transport.ts";

const KEYS: readonly Feature[] = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"];
const LESSER: readonly { name: string; lacks: readonly Feature[] }[] = [
  { name: "revisions", lacks: ["revisions"] },
  { name: "the journal", lacks: ["journal"] },
  { name: "positions", lacks: ["positions"] },
  { name: "keys", lacks: KEYS },
  { name: "conditions", lacks: ["conditions"] },
  { name: "versions and references", lacks: ["versions", "references"] },
  { name: "attributes", lacks: ["attributes"] },
  { name: "anything of it", lacks: FEATURE_NAMES },
];
const LAG = { path: 3_000, journal: 5_000, id: 0 };

/** Without conditions a request that arrives when nobody thinks of it any more undoes what came after it. */
function faultsOf(lacks: readonly Feature[]) {
  return lacks.includes("conditions") ? FAULTS.filter((fault) => fault !== "late") : FAULTS;
}

test.each(LESSER)("a mount alone is a plain folder on a gateway without $name", { timeout: 600_000 }, async (one) => {
  const settings = runSettings(15, 1);
  const failure = await playHistories({
    mounts: 1,
    lag: LAG,
    lacks: one.lacks,
    faults: faultsOf(one.lacks),
    hasKeys: true,
    ...settings,
  });
  expect(failure?.text).toBeUndefined();
});

test.each(LESSER)("two mounts agree on a gateway without $name", { timeout: 600_000 }, async ({ lacks }) => {
  const settings = runSettings(15, 1);
  const failure = await playHistories({ mounts: 2, lacks, faults: faultsOf(lacks), hasKeys: true, ...settings });
  expect(failure?.text).toBeUndefined();
});

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
  await expect(playHistory(LATE_LISTING, { ...options, sabotage })).rejects.toThrow(/only the mount|is back after/);
});
