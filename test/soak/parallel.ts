/**
 * `npm run soak -- parallel [ROUNDS] [SEED] [MOUNTS] [EDITS] [gone|replaced]`: so many mounts (default 3) edited at
 * the same time, as test/mount/parallel.test.ts has it for a moment; in each round somebody dies, and his mount goes
 * with him, or he is replaced.
 */
import { editInParallel, type Victim } from "../mount/support/parallel.ts";
import { seededRandom } from "../support/virtual-clock.ts";
import { createPlace } from "../support/wsfs.ts";

const VICTIMS: readonly (readonly Victim[])[] = [
  ["gateway"],
  ["daemon"],
  [],
  ["supervisor"],
  ["daemon", "gateway"],
  ["daemon", "daemon"],
  ["supervisor", "gateway", "daemon", "supervisor", "daemon"],
];
/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);

const [rounds = 10, seed = 1, mounts = 3, edits = 150] = process.argv.slice(2, 6).map(Number);
const mode = process.argv[6] ?? "gone";
const isCount = (value: number) => Number.isInteger(value) && value > 0;
if (![rounds, mounts, edits].every(isCount) || !Number.isInteger(seed) || !/^(gone|replaced)$/.test(mode)) {
  throw new Error("expected ROUNDS, SEED, MOUNTS, EDITS, and gone or replaced");
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
  const isReplaced = mode === "replaced";
  const counts = await editInParallel(place, { chance, mounts, edits, rounds: victims(), port: PORT, isReplaced });
  const seconds = Math.round((performance.now() - begun) / 1000);
  process.stdout.write(`${JSON.stringify({ mode, seed, mounts, ...counts, seconds })}\nnothing is lost\n`);
} catch (error) {
  // At once: to clean up may take long.
  process.stdout.write(`seed ${seed}: ${String(error)}\n`);
  throw error;
} finally {
  await place.cleanUp();
}
