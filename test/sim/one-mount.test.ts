/** One mount under lag, faults and crashes is a plain folder at every moment: nothing flickers, nothing is lost. */
import { expect, test } from "vitest";
import { playHistories, runSettings } from "./run.ts";

test("a mount alone shows what a plain folder would, at every moment", { timeout: 600_000 }, async () => {
  const settings = runSettings(500, 1);
  console.log(`simulation of one mount: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const failure = await playHistories({ mounts: 1, lag: { path: 3_000, journal: 5_000, id: 0 }, ...settings });
  expect(failure?.text).toBeUndefined();
});
