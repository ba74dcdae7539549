/**
 * `npm run soak -- steps [N [FROM [UNTIL]]]`: the crash matrix of test/sim/crash.test.ts, whole: every place of every
 * script, each alone and N times (default 0) with a second death drawn by STEPS_SEED, and every change with every
 * fault, alone and with a death on top. FROM, UNTIL: the runs from the one until before the other; one that was stopped
 * goes on so, it has said how far it came. A process for each processor has its share; in the end there is a table:
 * how often was died at each kind of place and at each fault, and what came of it.
 */
import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { FAULTS_OF_CHANGES, playFault, playKills } from "../sim/support/crash-matrix.ts";
import { playScript } from "../sim/support/crash-run.ts";
import { SCRIPTS } from "../sim/support/crash-scripts.ts";
import { seededRandom } from "../support/virtual-clock.ts";

/** Steps from a request that meets a fault to the death. */
const DEATHS = [0, 2, 5];

const [twice = 0, from = 0, end = Number.POSITIVE_INFINITY] = process.argv.slice(2).map(Number);
if (!Number.isInteger(twice) || twice < 0 || !Number.isInteger(from) || !(from < end)) {
  throw new Error("expected N, FROM and UNTIL");
}
const seed = Number(process.env.STEPS_SEED ?? 1);
const only = process.env.STEPS_SCRIPT;
const part = process.env.STEPS_PART;

const answer = z.object({
  turn: z.number(),
  script: z.string(),
  place: z.string(),
  problem: z.string().optional(),
});
type Answer = z.infer<typeof answer>;

/** Every run there is, in turns to `parts` processes; this is one of them. */
async function playPart(index: number, parts: number, tell: (told: Answer) => void): Promise<void> {
  const random = seededRandom(seed);
  let turn = -1;
  const isOurs = () => {
    turn += 1;
    return turn >= from && turn < end && turn % parts === index;
  };
  for (const script of SCRIPTS.filter(({ name }) => only === undefined || name === only)) {
    const { labels } = await playScript(script);
    const said = (place: string, problem: string | undefined) =>
      tell({ turn, script: script.name, place, ...(problem === undefined ? {} : { problem }) });
    for (const [place, label] of labels.entries()) {
      if (isOurs()) said(label, await playKills(script, labels, [place + 1]));
      for (let count = 0; count < twice; count += 1) {
        const second = place + 2 + Math.floor(random() * 60);
        if (isOurs()) said(`${label}, and again`, await playKills(script, labels, [place + 1, second]));
      }
    }
    const { requests } = await playScript(script);
    const changes = requests.length - (script.fault === undefined ? 0 : 1);
    for (let request = 1; request <= changes; request += 1) {
      for (const what of FAULTS_OF_CHANGES) {
        if (!isOurs()) continue;
        const answers = await playFault(script, { request, what, deaths: DEATHS });
        for (const [death, problem] of answers.entries()) {
          said(`change meets ${what}${death === 0 ? "" : ", and a death"}`, problem);
        }
      }
    }
  }
}

/** Its answers, until it ends. */
function childOf(index: number, parts: number, hear: (told: Answer) => void): Promise<void> {
  const env = { ...process.env, STEPS_PART: `${index}/${parts}` };
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), process.argv.slice(2), { env });
  child.on("message", (message) => hear(answer.parse(message)));
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`a part ended with ${code}`))));
  });
}

async function playAll(): Promise<void> {
  const table = new Map<string, { runs: number; failed: number }>();
  const scripts = new Map<string, number>();
  let runs = 0;
  let failures = 0;
  const parts = availableParallelism();
  const next: number[] = Array.from({ length: parts }, () => from);
  const hear = ({ turn, script, place, problem }: Answer) => {
    next[turn % parts] = turn;
    const row = table.get(place) ?? { runs: 0, failed: 0 };
    const failed = problem === undefined ? 0 : 1;
    table.set(place, { runs: row.runs + 1, failed: row.failed + failed });
    scripts.set(script, (scripts.get(script) ?? 0) + 1);
    runs += 1;
    failures += failed;
    if (problem !== undefined) process.stdout.write(`${problem}\n`);
    if (runs % 500 === 0) {
      process.stdout.write(`${runs} runs, ${failures} failures, all before ${Math.min(...next)}, at "${script}"\n`);
    }
  };
  await Promise.all(Array.from({ length: parts }, (_, index) => childOf(index, parts, hear)));
  const width = Math.max(...[...table.keys()].map((place) => place.length));
  process.stdout.write(`\n${"died at".padEnd(width)}    runs  failed\n`);
  for (const [place, row] of [...table].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const numbers = `${String(row.runs).padStart(8)}${String(row.failed).padStart(8)}`;
    process.stdout.write(`${place.padEnd(width)}${numbers}\n`);
  }
  process.stdout.write(`${JSON.stringify({ seed, from, scripts: Object.fromEntries(scripts), runs, failures })}\n`);
  if (failures > 0) process.exitCode = 1;
}

if (part === undefined) {
  await playAll();
} else {
  const [index = 0, parts = 1] = part.split("/").map(Number);
  await playPart(index, parts, (told) => process.send?.(told));
  process.disconnect();
}
