/**
 * A mount beside a plain folder on the same disk, in one run: what programs wait for. This process
 * touches no mount; whatever does is a child, and so is whatever serves one.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "../support/child.ts";
import { check, type Place } from "../support/wsfs.ts";
import { runBench } from "./support/bench.ts";
import { compileCalls } from "./support/calls.ts";
import { COLD_WORKLOADS, coldWorkloads, LATENCY_MS } from "./support/cold-workloads.ts";
import { type FarContent, farGateway, putContent } from "./support/far-content.ts";
import type { Figures, Report, Skipped } from "./support/figures.ts";
import { LOCAL_WORKLOADS, localWorkloads, type Tools } from "./support/local-workloads.ts";
import { type BenchOptions, describeMachine } from "./support/options.ts";
import { announce, isAsked, runWorkload, type Workload } from "./support/rounds.ts";
import { makeSampleTar } from "./support/sample-tree.ts";
import { type ColdSide, coldMountSide, mountSide, plainSide, type Side } from "./support/sides.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

const WORKLOADS: readonly string[] = [...LOCAL_WORKLOADS, ...COLD_WORKLOADS];

async function bench(place: Place, options: BenchOptions, other: Place): Promise<Report> {
  // The checkout may be another user's.
  writeFileSync(join(place.path("home"), ".gitconfig"), "[safe]\n\tdirectory = *\n");
  const tools: Tools = {
    place,
    calls: await compileCalls(place),
    sampleTar: await makeSampleTar(place),
    repository: PROJECT,
  };
  const known = options.library || options.beside !== undefined ? LOCAL_WORKLOADS : WORKLOADS;
  const asked = known.filter((name) => isAsked(name, options));
  const skipped = await findMissing(asked);
  const isToRun = ({ name }: { name: string }) =>
    asked.includes(name) && !skipped.some(({ workload }) => workload === name);
  const cold = coldWorkloads(tools).filter(isToRun);
  const contents = new Set(cold.map(({ content }) => content));
  const results = [
    ...(await runAll(localWorkloads(tools).filter(isToRun), () => nearSides(place, other, options), options)),
    ...(await runAll(cold, () => farSides(tools, contents, options), options)),
  ];
  const disk = check(await place.sh(`stat -f -c %T '${place.folder}'`)).stdout.trim();
  return {
    bench: "mount",
    measures: `${whatIsCompared(options)}; figures are the median (smallest-largest)`,
    machine: describeMachine(),
    sides: namesOfSides(options),
    notes: [
      `disk: ${disk}; gateway: a process of this machine`,
      ...(options.asUser ? ["all of it as an ordinary user"] : []),
      ...(options.noPassthrough ? ["the mount's daemon serves all bytes"] : []),
    ],
    results,
    skipped,
  };
}

function whatIsCompared({ library, beside }: BenchOptions): string {
  if (library) return "a mount by fuse-native beside one by the own transport";
  if (beside !== undefined) return `a mount by this build beside one by ${beside}`;
  return "a mount beside a plain folder on the same disk";
}

function namesOfSides({ library, beside, control }: BenchOptions): [string, string] {
  if (library) return ["kernel", "fuse-native"];
  if (beside !== undefined) return ["other", "mount"];
  return ["plain", control ? "control" : "mount"];
}

async function findMissing(asked: readonly string[]): Promise<Skipped[]> {
  const mayDrop = (await run("test", ["-w", "/proc/sys/vm/drop_caches"])).code === 0;
  const needsDrop = (name: string) => name.endsWith("-dropped") || name.endsWith("-cold");
  return asked.flatMap((workload) => {
    if (needsDrop(workload) && !mayDrop) return [{ workload, why: "this user may not drop the machine's caches" }];
    if (workload === "git" && !existsSync(join(PROJECT, ".git"))) return [{ workload, why: "no git repository here" }];
    return [];
  });
}

/** The sides are made only when there is something to run on them. */
async function runAll<S extends Side>(
  workloads: readonly Workload<S>[],
  makeSides: () => Promise<readonly [S, S]>,
  options: BenchOptions,
): Promise<Figures[]> {
  if (workloads.length === 0) return [];
  const sides = await makeSides();
  const results: Figures[] = [];
  for (const workload of workloads) {
    announce(workload.name);
    results.push(await runWorkload(workload, sides, options));
  }
  return results;
}

async function nearSides(place: Place, other: Place, options: BenchOptions): Promise<readonly [Side, Side]> {
  const args = mountArgs(options);
  if (options.library) {
    const by = async (transport: string) =>
      mountSide(place, await place.gateway({ name: `near-${transport}` }), transport, [
        "--transport",
        transport,
        ...args,
      ]);
    return [await by("kernel"), await by("fuse-native")];
  }
  if (options.beside !== undefined) {
    const by = async (of: Place, name: string) => mountSide(of, await of.gateway({ name: "near" }), name, args);
    return [await by(other, "other"), await by(place, "mount")];
  }
  const plain = await plainSide(place, "plain");
  if (options.control) return [plain, await plainSide(place, "control")];
  return [plain, await mountSide(place, await place.gateway({ name: "near" }), "mount", args)];
}

function mountArgs({ noPassthrough }: BenchOptions): string[] {
  return noPassthrough ? ["--no-passthrough"] : [];
}

/** Both hold the same. */
async function farSides(
  tools: Tools,
  contents: ReadonlySet<FarContent>,
  options: BenchOptions,
): Promise<readonly [ColdSide, ColdSide]> {
  const { place } = tools;
  const filled = async <S extends Side>(side: S): Promise<S> => {
    await putContent(tools, side.folder, contents);
    await side.finishWork();
    return side;
  };
  const plain = await filled(await plainSide(place, "far-plain"));
  if (options.control) return [plain, await filled(await plainSide(place, "far-control"))];
  const gateway = await farGateway(tools, contents, LATENCY_MS);
  return [plain, coldMountSide(place, gateway, "far-mount", mountArgs(options))];
}

await runBench(WORKLOADS, bench);
