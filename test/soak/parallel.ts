/**
 * `npm run soak -- parallel [ROUNDS] [SEED] [MOUNTS] [EDITS]`: so many mounts (default 3) edited at the
 * same time, as test/mount/parallel.test.ts has it for a moment; in each round somebody dies.
 */
import { editInParallel, type Victim } from "../mount/support/parallel.ts";
import { seededRandom } from "../support/virtual-clock.ts";
import { createPlace } from "../support/wsfs.ts";

const VICTIMS: readonly (readonly Victim[])[] = [
  ["gateway"],
  ["daemon"],
  [],
  ["daemon", "gateway"],
  ["daemon", "daemon"],
];
/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);

const [rounds = 10, seed = 1, mounts = 3, edits = 150] = process.argv.slice(2).map(Number);
const isCount = (value: number) => Number.isInteger(value) && value > 0;
if (![rounds, mounts, edits].every(isCount) || !Number.isInteger(seed)) {
  throw new Error("expected ROUNDS, SEED, MOUNTS and EDITS");
}
const place = createPlace();
const begun = performance.now();

function* victims() {
  for (let round = 0; round < rounds; round += 1) {
    const seconds = Math.round((performance.now() - begun) / 1000);
    process.stdout.write(`  round ${round}, ${seconds} s\n`);
    yield VICTIMS[round % VICTIMS.length] ?? [];
  }
}

try {
  const chance = seededRandom(seed);
  const counts = await editInParallel(place, { chance, mounts, edits, rounds: victims(), port: PORT });
  const seconds = Math.round((performance.now() - begun) / 1000);
  process.stdout.write(`${JSON.stringify({ seed, mounts, ...counts, seconds })}\nnothing is lost\n`);
} catch (error) {
  // At once: to clean up may take long.
  process.stdout.write(`seed ${seed}: ${String(error)}\n`);
  throw error;
} finally {
  await place.cleanUp();
}
