/**
 * Random histories of two and three mounts and a foreign client that change the same few names under lag, faults and
 * crashes: no finished content is lost, and all agree in the end.
 */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./support/run.ts";
import { createTally, describeTally } from "./support/tally.ts";
import { THREE, TWO } from "./support/worlds.ts";

test(TWO.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(100, 1);
  console.log(`simulation of two mounts: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...TWO.options, ...settings, tally });
  console.log(describeTally(tally));
  expect(failure?.text).toBeUndefined();
});

test(THREE.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(80, 1);
  console.log(`simulation of three mounts: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...THREE.options, ...settings, tally });
  console.log(describeTally(tally));
  expect(failure?.text).toBeUndefined();
});
