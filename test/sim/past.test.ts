/**
 * Random histories of two mounts, recorded at the gateway change by change: the history folder shows every moment, version
 * and deletion as they were, a tree goes back to any moment, and what one mount did is taken back and brought again.
 */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./support/run.ts";
import { createTally, describeTally } from "./support/tally.ts";
import { PAST } from "./support/worlds.ts";

test(PAST.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(40, 1);
  console.log(`simulation of the past: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...PAST.options, ...settings, tally });
  console.log(describeTally(tally));
  expect(failure?.text).toBeUndefined();
});
