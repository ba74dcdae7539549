/**
 * `npm run soak -- sim [N | Mm]`: N histories of the simulation (default 1,000), or as many as fit
 * into M minutes, with seeds drawn anew, in each kind of world in turn. Stops at the first failure
 * with the command that shows it again. Says what was played each minute, at the end, and when it is
 * stopped by a signal.
 */
import { randomInt } from "node:crypto";
import { playHistories } from "../sim/support/run.ts";
import { createTally, describeTally } from "../sim/support/tally.ts";
import { commandFor, LESSER, ONE, PAST, THREE, TWO, type WorldKind } from "../sim/support/worlds.ts";

const DEFAULT_COUNT = 1_000;
/** Histories of one seed. */
const BATCH = 20;
const REPORT_MS = 60_000;

const [given = String(DEFAULT_COUNT)] = process.argv.slice(2);
const [, number, unit] = /^(\d+)(m?)$/.exec(given) ?? [];
if (number === undefined) {
  process.stderr.write(`soak sim: expected a number of histories or minutes as "30m", got "${given}"\n`);
  process.exit(2);
}
const end = unit === "m" ? performance.now() + Number(number) * 60_000 : Number.POSITIVE_INFINITY;
const most = unit === "m" ? Number.POSITIVE_INFINITY : Number(number);

/** Most of them on the gateway mounts are made for. */
function* kinds(): Generator<WorldKind, never> {
  for (;;) {
    for (const lesser of LESSER) yield* [TWO, THREE, ONE, PAST, lesser];
  }
}

const tally = createTally();
const begun = performance.now();
const minutes = () => `${((performance.now() - begun) / 60_000).toFixed(1)} minutes`;
const played = () => `${describeTally(tally)}\n${minutes()}\n`;
/** Memory too, for a run of hours is to stay as large as it is. */
const progress = () => {
  const megabytes = Math.round(process.memoryUsage.rss() / 2 ** 20);
  return `${minutes()}: ${describeTally(tally).split("\n")[0]}; ${megabytes} MiB\n`;
};
/** One that fails, while it is made shorter. */
let failing: string | undefined;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    process.stdout.write(`${played()}stopped; ${failing ?? "all of them hold"}\n`);
    process.exit(failing === undefined ? 0 : 1);
  });
}
let reportedAt = performance.now();
for (const kind of kinds()) {
  const left = most - tally.histories;
  if (left <= 0 || performance.now() >= end) break;
  const seed = randomInt(1, 2 ** 31);
  const onFailure = ({ message }: Error) => {
    failing = `one of SIM_SEED=${seed} SIM_RUNS=${BATCH} does not, in "${kind.name}": ${message}`;
  };
  const failure = await playHistories({ ...kind.options, seed, count: Math.min(BATCH, left), tally, onFailure });
  if (failure !== undefined) {
    process.stdout.write(`${failure.text}\n${commandFor(kind, failure)}\n${played()}`);
    process.exit(1);
  }
  if (performance.now() - reportedAt < REPORT_MS) continue;
  reportedAt = performance.now();
  process.stdout.write(progress());
}
process.stdout.write(`${played()}all hold\n`);
