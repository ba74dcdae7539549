/**
 * A mount beside one of rclone's, in one run: both have what they show 20 ms away, rclone by WebDAV with its full cache
 * (`--vfs-cache-mode full`). What is there, looked at for the first time, and what a program waits for that makes or removes
 * many files.
 */
import { check, type Place } from "../support/wsfs.ts";
import { runBench } from "./support/bench.ts";
import { compileCalls } from "./support/calls.ts";
import { coldWorkloads, LATENCY_MS } from "./support/cold-workloads.ts";
import { type FarContent, farGateway, putContent } from "./support/far-content.ts";
import type { Figures, Report } from "./support/figures.ts";
import { localWorkloads, type Tools } from "./support/local-workloads.ts";
import { type BenchOptions, describeMachine } from "./support/options.ts";
import { rcloneSide, whyNoRclone } from "./support/rclone-side.ts";
import { announce, isAsked, runWorkload } from "./support/rounds.ts";
import { makeSampleTar } from "./support/sample-tree.ts";
import { coldMountSide } from "./support/sides.ts";

const COLD = ["find-10k-cold", "grep-cold", "read-512m-cold"];
const LOCAL = ["untar", "rm"];
const WORKLOADS = [...COLD, ...LOCAL];
/** An rm by rclone takes up to a minute. */
const ROUNDS = 3;

async function bench(place: Place, options: BenchOptions): Promise<Report> {
  const why = await whyNoRclone(place);
  const asked = WORKLOADS.filter((name) => isAsked(name, options));
  return {
    bench: "rclone",
    measures: "a mount beside one by rclone, of what is as far away; figures are the median (smallest-largest)",
    machine: describeMachine(),
    sides: ["rclone", "mount"],
    notes: why === undefined ? [check(await place.sh("rclone version")).stdout.split("\n")[0] ?? ""] : [],
    results: why === undefined ? await measure(place, asked, { rounds: options.rounds ?? ROUNDS }) : [],
    skipped: why === undefined ? [] : asked.map((workload) => ({ workload, why })),
  };
}

async function measure(place: Place, asked: readonly string[], options: { rounds: number }): Promise<Figures[]> {
  const sampleTar = await makeSampleTar(place);
  const tools: Tools = { place, calls: await compileCalls(place), sampleTar, repository: place.folder };
  const cold = coldWorkloads(tools).filter(({ name }) => asked.includes(name));
  const local = localWorkloads(tools).filter(({ name }) => asked.includes(name));
  const contents = new Set<FarContent>(cold.map(({ content }) => content));
  const rclone = await rcloneSide(place, "rclone", LATENCY_MS);
  try {
    await putContent(tools, rclone.source, contents);
    const mount = coldMountSide(place, await farGateway(tools, contents, LATENCY_MS), "mount");
    const sides = [rclone, mount] as const;
    const results: Figures[] = [];
    for (const workload of cold) {
      announce(workload.name);
      results.push(await runWorkload(workload, sides, options));
    }
    if (local.length > 0) for (const side of sides) await side.forget();
    for (const workload of local) {
      announce(workload.name);
      results.push(await runWorkload(workload, sides, options));
    }
    return results;
  } finally {
    await rclone.end();
  }
}

await runBench(WORKLOADS, bench);
