/** Two mounts and somebody outside change the same few names under lag, faults and crashes: nothing is lost, all agree. */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./run.ts";

test("two mounts of one workspace end in agreement, with every finished content kept", {
  timeout: 600_000,
}, async () => {
  const settings = runSettings(1000, 1);
  console.log(`simulation of two mounts: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const failure = await playHistories({ mounts: 2, ...settings });
  expect(failure?.text).toBeUndefined();
});
