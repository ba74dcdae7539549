/** One mount under lag, faults and crashes is a plain folder at every moment: nothing flickers, nothing is lost. */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./run.ts";
import { ONE } from "./worlds.ts";

test(ONE.name, { timeout: 600_000 }, async () => {
  const settings = runSettings(120, 1);
  console.log(`simulation of one mount: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const failure = await playHistories({ ...ONE.options, ...settings });
  expect(failure?.text).toBeUndefined();
});
