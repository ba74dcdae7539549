/**
 * `npm run soak -- restart [ONLY]`: the daemon of a mount dies at every place of programs that make every change there
 * is, as test/mount/restart.test.ts has a few: with a kernel that reads and writes files itself ("passed") and a daemon
 * that does ("served"). And each daemon that takes over dies at each of its fault points. Two at a time; ONLY: a part
 * of the name of what is to be run. Ends with a table, and fails where a program saw an error, or something else than
 * without deaths.
 */
import { availableParallelism } from "node:os";
import { armed, type Deaths, dieEverywhere, dieTakingOver, type ProgramName } from "../mount/support/restart.ts";
import { daemonLabels, engineLabels } from "../support/step-labels.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

/** A daemon dies at the first place that is left: most of them with a request that was at hand at deaths before. */
const GAP = 1;

const PROGRAMS: readonly ProgramName[] = ["changes", "git", "sqlite", "dd"];
const MOUNTS = { passed: [], served: ["--no-passthrough"] } as const;

interface Job {
  readonly name: string;
  run(place: Place): Promise<Deaths>;
}

const tell = (line: string) => process.stdout.write(`${line}\n`);

async function dieUnder(place: Place, name: string, program: ProgramName, args: readonly string[]): Promise<Deaths> {
  const gateway = await place.gateway();
  const meet = armed(place);
  const mount = await place.mount(gateway, { args });
  const deaths = await dieEverywhere(place, mount, meet, { program, gap: GAP }, (count) =>
    tell(`${name}: ${count} deaths`),
  );
  check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
  await mount.umount();
  return deaths;
}

async function dieInSuccession(place: Place, args: readonly string[]): Promise<Deaths> {
  place.env.WSFS_CRASHES = "1000000";
  const labels = [...daemonLabels(), ...engineLabels()];
  const died = await dieTakingOver(place, labels, args);
  return { places: died.length, died, left: [], errors: [], different: [] };
}

const jobs: Job[] = Object.entries(MOUNTS).flatMap(([how, args]) => [
  ...PROGRAMS.map((program) => {
    const name = `${how}, ${program}`;
    return { name, run: (place: Place) => dieUnder(place, name, program, args) };
  }),
  { name: `${how}, taking over`, run: (place: Place) => dieInSuccession(place, args) },
]);

const table: string[] = [];

async function runJob({ name, run }: Job): Promise<void> {
  const place = createPlace();
  const begun = performance.now();
  try {
    const { places, died, left, errors, different } = await run(place);
    for (const error of errors) tell(`${name}: ERROR ${error}`);
    for (const difference of different) tell(`${name}: DIFFERENT ${difference}`);
    for (const one of left) tell(`${name}: only while taking over: ${one}`);
    const seconds = Math.round((performance.now() - begun) / 1000);
    const counts = [places, died.length, left.length, errors.length, different.length, seconds];
    table.push(`| ${[name, ...counts].join(" | ")} |`);
    if (errors.length + different.length > 0) process.exitCode = 1;
  } catch (error) {
    table.push(`| ${name} | failed |`);
    tell(`${name}: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  } finally {
    await place.cleanUp();
  }
}

const [only = ""] = process.argv.slice(2);
const waiting = jobs.filter(({ name }) => name.includes(only));
if (waiting.length === 0)
  throw new Error(`expected a part of one of ${jobs.map(({ name }) => `"${name}"`).join(", ")}`);
async function work(): Promise<void> {
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) await runJob(job);
}
await Promise.all(Array.from({ length: availableParallelism() }, work));
tell("| mount, program | places | kills | only while taking over | errors | different results | seconds |");
tell("|---|---|---|---|---|---|---|");
for (const row of table.sort()) tell(row);
