/** `npm run soak -- power [CUTS] [SEED]`: power cuts of a recorded daemon. */
import { chooseCuts, cutAt, unrecorded } from "../support/power/cuts.ts";
import { record } from "../support/power/record.ts";
import { createPlace } from "../support/wsfs.ts";

const [count = 2000, seed = 1] = process.argv.slice(2).map(Number);
const ROUNDS = 12;

const place = createPlace();
let failed = 0;
try {
  const recording = await record(place, { seed, rounds: ROUNDS });
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
