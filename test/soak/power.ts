/**
 * `npm run soak -- power [CUTS] [SEED] [local|remote]`: power cuts of a recorded daemon, as
 * test/mount/power.test.ts has a few; the last argument is what close and fsync wait for.
 */
import { chooseCuts, cutAt, unrecorded } from "../support/power/cuts.ts";
import { record } from "../support/power/record.ts";
import { createPlace } from "../support/wsfs.ts";

const [count = 2000, seed = 1] = process.argv.slice(2, 4).map(Number);
const durability = process.argv[4] ?? "local";
if (durability !== "local" && durability !== "remote") throw new Error(`expected local or remote, got ${durability}`);
const ROUNDS = Number(process.env.POWER_ROUNDS ?? 12);

const place = createPlace();
let failed = 0;
try {
  const recording = await record(place, { seed, rounds: ROUNDS, durability });
  for (const line of unrecorded(recording)) {
    failed += 1;
    console.log(line);
  }
  const syncs = recording.recorded.filter(({ change }) => change.kind === "syncEnd").length;
  console.log(`recorded ${recording.recorded.length} changes, ${syncs} syncs, seed ${seed}`);
  const begun = performance.now();
  await cutAt(recording, chooseCuts(recording, count, seed), (cut, fate, problems) => {
    if (problems.length === 0) return;
    failed += 1;
    console.log(`cut at ${cut.at}, seed ${cut.seed}, data ${fate.data}, names ${fate.names}:`);
    for (const problem of problems) console.log(`  ${problem}`);
  });
  console.log(`${count} cuts, ${failed} wrong, ${Math.round(performance.now() - begun)} ms`);
} finally {
  await place.cleanUp();
}
process.exitCode = failed === 0 ? 0 : 1;
