/**
 * What waits to be uploaded: how fast many small files are drained, beside the product's client
 * alone with the same files, near and far; and how soon a mount is usable on top of a long queue, or beside one by
 * another build.
 */
import { fileURLToPath } from "node:url";
import { spawnUntilLine } from "../support/child.ts";
import type { Place, TestGateway } from "../support/wsfs.ts";
import { check } from "../support/wsfs.ts";
import { makeBacklog } from "./support/backlog.ts";
import { runBench } from "./support/bench.ts";
import { LATENCY_MS } from "./support/cold-workloads.ts";
import type { Figures, Report } from "./support/figures.ts";
import { type BenchOptions, describeMachine } from "./support/options.ts";
import { announce, isAsked, type Observed, runWorkload, type Workload } from "./support/rounds.ts";
import { BYTES, CONNECTIONS, FILES } from "./support/small-files.ts";

const BACKLOG = 100_000;
const TYPESCRIPT = fileURLToPath(new URL("../../scripts/typescript.mjs", import.meta.url));
const DRAIN = fileURLToPath(new URL("support/drain.ts", import.meta.url));

const WORKLOADS = ["drain", "far", "start"] as const;

interface Side extends Observed {
  readonly name: string;
  prepare(): Promise<void>;
  /** Seconds for all of it. */
  run(): Promise<number>;
  cleanUp(): Promise<void>;
}

/** A process for each round, as a daemon is one: to hear of the other side's files would take that side's time. */
function aloneSide(name: "client" | "engine", gateway: TestGateway, stateDir: string): Side {
  let alone: Awaited<ReturnType<typeof spawnUntilLine>> | undefined;
  return {
    name,
    async prepare() {
      const { baseUrl, tokenFile, workspace } = gateway;
      const program = ["--enable-source-maps", "--import", TYPESCRIPT, DRAIN];
      alone = await spawnUntilLine(process.execPath, [...program, name, baseUrl, tokenFile, workspace, stateDir]);
      if (alone.line === undefined) throw new Error(`the ${name} ended: ${(await alone.ended).stderr}`);
    },
    async run() {
      if (alone === undefined) throw new Error("run before prepare");
      alone.child.kill("SIGUSR2");
      const { stdout } = check(await alone.ended);
      return Number(stdout.trimEnd().split("\n").at(-1));
    },
    async cleanUp() {
      alone?.child.kill("SIGKILL");
      await alone?.ended;
    },
  };
}

const drainLoad = (name: string, where: string): Workload<Side> => ({
  name,
  measures: `${FILES} new files of ${BYTES} bytes sent${where}, at most ${CONNECTIONS} at a time, a second`,
  command: "wsfs drain DIR --no-settle",
  unit: "files/s",
  rounds: 3,
  prepare: (side) => side.prepare(),
  measure: async (side) => FILES / (await side.run()),
  cleanUp: (side) => side.cleanUp(),
});

async function measureDrain(
  load: Workload<Side>,
  args: string[],
  place: Place,
  options: BenchOptions,
): Promise<Figures> {
  announce(load.name);
  const gateway = await place.gateway({ name: load.name, args });
  const first = aloneSide("client", gateway, place.path(load.name));
  const second = aloneSide(options.control ? "client" : "engine", gateway, place.path(load.name));
  return runWorkload(load, [first, second], options);
}

interface Started {
  readonly place: Place;
  readonly name: string;
  /** Files that wait to be uploaded. */
  readonly backlog: number;
}

/** From the command to the answer of the first ls, the gateway not there. */
async function measureStarts([first, second]: readonly [Started, Started], options: BenchOptions): Promise<Figures> {
  announce("start");
  const gateway = await first.place.gateway({ name: "start" });
  for (const { place, name, backlog } of [first, second]) {
    const mount = await place.mount(gateway, { name });
    await mount.umount();
    await makeBacklog(mount.stateDir, backlog);
  }
  check(await gateway.stop());
  const start = async ({ place, name }: Started) => {
    const begun = performance.now();
    const mount = await place.mount(gateway, { name });
    check(await mount.sh("ls -d ."));
    check(await mount.sh("ls | head -1"));
    const seconds = (performance.now() - begun) / 1000;
    await mount.umount();
    return seconds;
  };
  const values = { first: [] as number[], second: [] as number[] };
  for (let round = 1; round <= (options.rounds ?? 3); round += 1) {
    values.first.push(await start(first));
    values.second.push(await start(second));
  }
  const ofEach = [first, second].map(({ name, backlog }) => `${name} with ${backlog} files to upload`).join(", ");
  return {
    workload: "start",
    measures: `mount until the first ls is answered, offline: ${ofEach}`,
    command: "wsfs mount DIR ... --background; ls DIR",
    unit: "s",
    ...values,
  };
}

/** The build of `other` beside this one. */
async function benchBeside(place: Place, options: BenchOptions, other: Place): Promise<Report> {
  const skipped = WORKLOADS.filter((name) => name !== "start" && isAsked(name, options));
  const starts = [
    { place: other, name: "other", backlog: 0 },
    { place, name: "this", backlog: 0 },
  ] as const;
  return {
    bench: "queue",
    measures: `a mount by this build beside one by ${options.beside}; figures are the median (smallest-largest)`,
    machine: describeMachine(),
    sides: ["other", "this"],
    notes: [],
    results: isAsked("start", options) ? [await measureStarts(starts, options)] : [],
    skipped: skipped.map((workload) => ({ workload, why: "not beside another build" })),
  };
}

async function bench(place: Place, options: BenchOptions, other: Place): Promise<Report> {
  if (options.beside !== undefined) return benchBeside(place, options, other);
  const results: Figures[] = [];
  if (isAsked("drain", options)) results.push(await measureDrain(drainLoad("drain", ""), [], place, options));
  if (isAsked("far", options)) {
    const load = drainLoad("far", ` to a gateway that takes ${LATENCY_MS} ms for each answer`);
    results.push(await measureDrain(load, ["--latency", String(LATENCY_MS)], place, options));
  }
  if (isAsked("start", options)) {
    const starts = [
      { place, name: "short", backlog: 0 },
      { place, name: "long", backlog: BACKLOG },
    ] as const;
    results.push(await measureStarts(starts, options));
  }
  return {
    bench: "queue",
    measures: "the queue; figures are the median (smallest-largest)",
    machine: describeMachine(),
    sides: ["client/short", options.control ? "control" : "engine/long"],
    notes: ["gateway: a process of this machine; drain, far: the client alone beside the engine, each in a process"],
    results,
    skipped: [],
  };
}

await runBench(WORKLOADS, bench);
