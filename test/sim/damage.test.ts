/**
 * Rows that are lost, or older than what was done by them: no content a program was promised is lost,
 * none is doubled, and mount and gateway agree when all is quiet.
 */
import { describe, expect, test } from "vitest";
import { type Damage, playDamage } from "./damage-run.ts";

const SEED = Number(process.env.WSFS_SEED ?? 1);
const RUNS = Number(process.env.SIM_RUNS ?? 2);

const DAMAGES: readonly Damage[] = (["copy", "none", "behind"] as const).flatMap((rows) =>
  (["whole", "damaged", "gone"] as const).flatMap((list) =>
    [true, false].flatMap((isDrained) =>
      (["crash", "stop"] as const).map((ends): Damage => ({ rows, list, isDrained, ends })),
    ),
  ),
);

/** Rows that nothing says are old are found to be only by the list, and only after a crash. How it ended matters little else. */
const isPlayed = ({ rows, list, ends }: Damage) => (list === "whole" && rows !== "behind") || ends === "crash";
const isFound = ({ rows, list }: Damage) => rows !== "behind" || list === "whole";

describe.each(DAMAGES.filter(isPlayed).filter(isFound))("rows: $rows, list: $list, drained: $isDrained, $ends", (damage) => {
  test("nothing is lost or doubled", async () => {
    for (let index = 0; index < RUNS; index += 1) {
      const seed = SEED * 1000 + index;
      expect(await playDamage(seed, damage), `seed ${seed}`).toEqual([]);
    }
  });
});
