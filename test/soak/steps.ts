/**
 * The crash matrix of test/sim/crash.test.ts, whole: every place of every script, each alone and
 * `N` times with a second death drawn by STEPS_SEED, and every change with every fault. Argument: N.
 */

import { FAULTS_OF_CHANGES, playFault, playKills } from "../sim/crash-matrix.ts";
import { playScript } from "../sim/crash-run.ts";
import { SCRIPTS } from "../sim/crash-scripts.ts";
import { seededRandom } from "../support/virtual-clock.ts";

const twice = Number(process.argv[2] ?? 0);
if (!Number.isInteger(twice) || twice < 0) throw new Error(`expected a number, got ${process.argv[2]}`);
const seed = Number(process.env.STEPS_SEED ?? 1);
const only = process.env.STEPS_SCRIPT;
const random = seededRandom(seed);
let runs = 0;
let failures = 0;

function told(problem: string | undefined): void {
  runs += 1;
  if (problem === undefined) return;
  failures += 1;
  process.stdout.write(`${problem}\n`);
}

for (const script of SCRIPTS.filter(({ name }) => only === undefined || name === only)) {
  const { labels, requests } = await playScript(script);
  for (const place of labels.keys()) {
    told(await playKills(script, labels, [place + 1]));
    for (let count = 0; count < twice; count += 1) {
      told(await playKills(script, labels, [place + 1, place + 2 + Math.floor(random() * 60)]));
    }
  }
  const changes = requests.length - (script.fault === undefined ? 0 : 1);
  for (let request = 1; request <= changes; request += 1) {
    for (const what of FAULTS_OF_CHANGES) {
      for (const hasKeys of [true, false]) {
        for (const after of [undefined, 0, 2, 5]) told(await playFault(script, { request, what, after, hasKeys }));
      }
    }
  }
  process.stdout.write(`${script.name}: ${runs} runs in all, ${failures} failures\n`);
}
process.stdout.write(`${JSON.stringify({ seed, runs, failures })}\n`);
if (failures > 0) process.exitCode = 1;
