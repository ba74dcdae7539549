/**
 * What waits to be uploaded: how fast many small files are drained, beside the product's client
 * alone with the same files, near and far; and how soon a mount is usable on top of a long queue.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import type { Place, TestGateway } from "../support/wsfs.ts";
import { check } from "../support/wsfs.ts";
import { makeBacklog } from "./support/backlog.ts";
import { runBench } from "./support/bench.ts";
import { productCaller } from "./support/callers.ts";
import { LATENCY_MS } from "./support/cold-workloads.ts";
import { type EngineAlone, startAlone } from "./support/engine.ts";
import type { Figures, Report } from "./support/figures.ts";
import { type BenchOptions, describeMachine } from "./support/options.ts";
import { announce, isAsked, type Observed, runWorkload, type Workload } from "./support/rounds.ts";

const FILES = 10_000;
const BYTES = 1024;
/** As a daemon has. */
const CONNECTIONS = 32;
const BACKLOG = 100_000;
const CALLER = { uid: 0, gid: 0, pid: 1, signal: new AbortController().signal };
/** Nothing is sent while the files are made. */
const NEVER_MS = 3_600_000;

const WORKLOADS = ["drain", "far", "start"] as const;

interface Side extends Observed {
  readonly name: string;
  prepare(round: number): Promise<void>;
  /** Seconds for all of it. */
  run(): Promise<number>;
  cleanUp(): Promise<void>;
}

const seconds = async (work: () => Promise<unknown>) => {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
};

/** Every file its own content, the same on both sides. */
const contentOf = (index: number) => Buffer.alloc(BYTES, `content ${index} `);

async function clientAlone(gateway: TestGateway): Promise<Side> {
  const caller = await productCaller(gateway, CONNECTIONS);
  let folder = "";
  return {
    name: "client",
    async prepare() {
      folder = await caller.makeFolder(`client-${randomUUID()}`);
    },
    run: () =>
      seconds(async () => {
        let next = 0;
        const one = async () => {
          for (let index = next++; index < FILES; index = next++) {
            const block = contentOf(index);
            const hash = createHash("sha256").update(block).digest("hex");
            await caller.upload(folder, `file-${index}`, { block, times: 1, hash });
          }
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, one));
      }),
    cleanUp: () => caller.close(),
  };
}

/** It is there for its own turns only: hearing of the other side's files would take that side's time. */
async function engineAlone(gateway: TestGateway, stateDir: string): Promise<Side> {
  mkdirSync(stateDir, { recursive: true });
  let alone: EngineAlone | undefined;
  const stop = async () => {
    await alone?.stop();
    alone = undefined;
  };
  const drain = async () => {
    const result = await alone?.engine.drain({ settle: false, signal: CALLER.signal });
    if (result?.drained !== true) throw new Error(`not drained: ${result?.left.join("; ")}`);
  };
  return {
    name: "engine",
    async prepare(round) {
      alone = await startAlone(gateway, stateDir, { debounceMs: NEVER_MS, concurrency: CONNECTIONS });
      const { fileSystem, context } = alone.engine;
      const parent = context.metadata.inodes.get(ROOT_INODE)?.lineage ?? 0;
      const folder = await fileSystem.mkdir(CALLER, parent, `engine-${round}-${randomUUID()}`, 0o755);
      await drain();
      const flags = { read: false, write: true, append: false, truncate: false, exclusive: true };
      for (let index = 0; index < FILES; index += 1) {
        const { handle } = await fileSystem.create(CALLER, folder.lineage, `file-${index}`, 0o644, flags);
        await fileSystem.write(CALLER, handle, 0, contentOf(index), { killPrivileges: false });
        await fileSystem.flush(CALLER, handle);
        await fileSystem.release(handle);
      }
    },
    async run() {
      const took = await seconds(drain);
      await stop();
      return took;
    },
    cleanUp: stop,
  };
}

const drainLoad = (name: string, where: string): Workload<Side> => ({
  name,
  measures: `${FILES} new files of ${BYTES} bytes sent${where}, at most ${CONNECTIONS} at a time, a second`,
  command: "wsfs drain DIR --no-settle",
  unit: "files/s",
  rounds: 3,
  prepare: (side, round) => side.prepare(round),
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
  const first = await clientAlone(gateway);
  const second = options.control ? await clientAlone(gateway) : await engineAlone(gateway, place.path(load.name));
  return runWorkload(load, [first, second], options);
}

/** From the command to the answer of the first ls, the gateway not there. */
async function measureStarts(place: Place, options: BenchOptions): Promise<Figures> {
  announce("start");
  const gateway = await place.gateway({ name: "start" });
  const values = { first: [] as number[], second: [] as number[] };
  for (const [name, count] of [
    ["short", 0],
    ["long", BACKLOG],
  ] as const) {
    const mount = await place.mount(gateway, { name });
    await mount.umount();
    await makeBacklog(mount.stateDir, count);
  }
  check(await gateway.stop());
  for (let round = 1; round <= (options.rounds ?? 3); round += 1) {
    for (const [name, into] of [
      ["short", values.first],
      ["long", values.second],
    ] as const) {
      const begun = performance.now();
      const mount = await place.mount(gateway, { name });
      check(await mount.sh("ls -d ."));
      check(await mount.sh("ls | head -1"));
      into.push((performance.now() - begun) / 1000);
      await mount.umount();
    }
  }
  return {
    workload: "start",
    measures: `mount until the first ls is answered, offline: with nothing to upload, and with ${BACKLOG} files`,
    command: "wsfs mount DIR ... --background; ls DIR",
    unit: "s",
    ...values,
  };
}

async function bench(place: Place, options: BenchOptions): Promise<Report> {
  const results: Figures[] = [];
  if (isAsked("drain", options)) results.push(await measureDrain(drainLoad("drain", ""), [], place, options));
  if (isAsked("far", options)) {
    const load = drainLoad("far", ` to a gateway that takes ${LATENCY_MS} ms for each answer`);
    results.push(await measureDrain(load, ["--latency", String(LATENCY_MS)], place, options));
  }
  if (isAsked("start", options)) results.push(await measureStarts(place, options));
  return {
    bench: "queue",
    measures: "the queue; figures are the median (smallest-largest)",
    machine: describeMachine(),
    sides: ["client/short", options.control ? "control" : "engine/long"],
    notes: ["gateway: a process of this machine; drain, far: the client alone beside the engine, in one process"],
    results,
    skipped: [],
  };
}

await runBench(WORKLOADS, bench);
