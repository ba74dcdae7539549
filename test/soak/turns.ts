/**
 * `npm run soak -- turns [SECONDS] [SEED]`: two mounts edited in turn for so long (default 60), as
 * test/mount/turns.test.ts has a few turns; a daemon is killed in every fourth.
 */
import { takeTurns } from "../mount/support/turns.ts";
import { seededRandom } from "../support/virtual-clock.ts";
import { createPlace } from "../support/wsfs.ts";

const [seconds = 60, seed = 1] = process.argv.slice(2).map(Number);
if (!(seconds > 0) || !Number.isInteger(seed)) throw new Error("expected SECONDS and SEED");
const place = createPlace();
const begun = performance.now();
const elapsed = () => (performance.now() - begun) / 1000;
try {
  const turns = await takeTurns(place, {
    chance: seededRandom(seed),
    goesOn: () => elapsed() < seconds,
    isKilled: (turn) => turn % 4 === 1,
  });
  process.stdout.write(`seed ${seed}: both showed the same after each of ${turns} turns, ${elapsed().toFixed(0)} s\n`);
} finally {
  await place.cleanUp();
}
