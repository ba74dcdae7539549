/** Three mounts and somebody outside change the same few names under lag, faults and crashes: nothing is lost, all agree. */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./support/run.ts";
import { createTally, describeTally } from "./support/tally.ts";
import { THREE } from "./support/worlds.ts";

test(THREE.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(180, 1);
  console.log(`simulation of three mounts: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...THREE.options, ...settings, tally });
  console.log(describeTally(tally));
  expect(failure?.text).toBeUndefined();
});
