/** Two mounts and somebody outside change the same few names under lag, faults and crashes: nothing is lost, all agree. */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./support/run.ts";
import { createTally, describeTally } from "./support/tally.ts";
import { TWO } from "./support/worlds.ts";

test(TWO.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(240, 1);
  console.log(`simulation of two mounts: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...TWO.options, ...settings, tally });
  console.log(describeTally(tally));
  expect(failure?.text).toBeUndefined();
});
