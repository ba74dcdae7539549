/** Random histories of one mount under lag, faults and crashes: at every moment it shows what a plain folder would. */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./support/run.ts";
import { createTally, describeTally } from "./support/tally.ts";
import { ONE } from "./support/worlds.ts";

test(ONE.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(160, 1);
  console.log(`simulation of one mount: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...ONE.options, ...settings, tally });
  console.log(describeTally(tally));
  expect(failure?.text).toBeUndefined();
});
