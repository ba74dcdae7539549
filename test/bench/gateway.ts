/**
 * What the local gateway takes, as a process of its own: small uploads, listings, content up and
 * down; once through the product's client, once through plain node:http. Both run in this process.
 * Beside each: what limits it, and what the same calls come to with a server that does nothing.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Place } from "../support/wsfs.ts";
import { runBench } from "./support/bench.ts";
import { type Caller, type Content, plainCaller, productCaller } from "./support/callers.ts";
import { type Figures, type Report, spread } from "./support/figures.ts";
import { type BenchOptions, describeMachine } from "./support/options.ts";
import { announce, isAsked, type Observed, runWorkload, type Workload } from "./support/rounds.ts";

const CONNECTIONS = 16;
const UPLOADS = 1000;
const READS = 2000;
const READ_FILES = 100;
const LISTED = 5000;
const PAGE = 1000;
const MIB = 1024 ** 2;
const STREAM_MIB = 256;
const BLOCK = 64 * 1024;
/** USER_HZ of Linux. */
const TICKS_PER_SECOND = 100;

/** Rounds with the server that does nothing, after one that is not counted. */
const IDLE_ROUNDS = 3;

interface Side extends Observed, Pick<Caller, "upload" | "download" | "getNode" | "list"> {
  readonly name: string;
}

/** A server that does nothing: what the callers and node:http come to by themselves. */
interface Idle {
  readonly pid: number;
  readonly caller: ReturnType<typeof plainCaller>;
  close(): void;
}

const WORKLOADS = ["uploads", "nodes", "small-contents", "listing", "content-up", "content-down"] as const;
type Load = Workload<Side> & {
  readonly name: (typeof WORKLOADS)[number];
  /** The figure with a server that does nothing; absent where it could not do even that. */
  readonly idle?: (caller: Idle["caller"]) => Promise<number>;
};

function loads(folder: string): Load[] {
  const small = contentOf(1024, 1);
  const big = contentOf(BLOCK, (STREAM_MIB * MIB) / BLOCK);
  const rate = async (count: number, work: () => Promise<unknown>) => {
    const started = performance.now();
    await work();
    return count / ((performance.now() - started) / 1000);
  };
  const uploadMany = (side: Side, prefix: string, count: number) =>
    inParallel(count, CONNECTIONS, (index) => side.upload(folder, `${prefix}-${index}`, small));
  const streams = new Map<Side, string>();
  const files: string[] = [];
  let filled = 0;
  const readMany = (work: (id: string) => Promise<unknown>) =>
    inParallel(READS, CONNECTIONS, (index) => work(files[index % files.length] ?? ""));
  const setUpReads = async (side: Side) => {
    if (files.length > 0) return;
    for (let index = 0; index < READ_FILES; index += 1) files.push(await side.upload(folder, `read-${index}`, small));
    filled += READ_FILES;
  };

  return [
    {
      name: "uploads",
      measures: `new files of 1 KiB a second, ${CONNECTIONS} connections`,
      command: "POST /v1/files/NAME?parentId=ID",
      unit: "uploads/s",
      rounds: 5,
      async measure(side, round) {
        filled += UPLOADS;
        return rate(UPLOADS, () => uploadMany(side, `${side.name}-${round}`, UPLOADS));
      },
      idle: (caller) =>
        rate(UPLOADS, () => inParallel(UPLOADS, CONNECTIONS, (index) => caller.upload(folder, `${index}`, small))),
    },
    {
      name: "nodes",
      measures: `nodes read by id a second, ${CONNECTIONS} connections`,
      command: "GET /v1/nodes/ID",
      unit: "nodes/s",
      rounds: 5,
      setUp: setUpReads,
      measure: (side) => rate(READS, () => readMany((id) => side.getNode(id))),
      idle: (caller) => rate(READS, () => inParallel(READS, CONNECTIONS, () => caller.getNode("id"))),
    },
    {
      name: "small-contents",
      measures: `contents of 1 KiB read a second, ${CONNECTIONS} connections`,
      command: "GET /v1/nodes/ID/content",
      unit: "files/s",
      rounds: 5,
      setUp: setUpReads,
      measure: (side) =>
        rate(READS, () => readMany(async (id) => expectBytes(await side.download(id), small.block.length))),
      idle: (caller) =>
        rate(READS, () => inParallel(READS, CONNECTIONS, () => caller.download(`${small.block.length}`))),
    },
    {
      name: "listing",
      measures: `pages of ${PAGE} nodes a second, one after the other, of a folder with ${LISTED} or more`,
      command: `GET /v1/nodes?parentId=ID&pageSize=${PAGE}`,
      unit: "pages/s",
      rounds: 5,
      async setUp(side) {
        const missing = LISTED - filled;
        if (missing <= 0) return;
        filled += missing;
        await uploadMany(side, "listed", missing);
      },
      measure: (side) =>
        rate(Math.ceil(filled / PAGE), async () => {
          const count = await side.list(folder, PAGE);
          if (count < filled) throw new Error(`expected at least ${filled} nodes, got ${count}`);
        }),
    },
    {
      name: "content-up",
      measures: `one upload of ${STREAM_MIB} MiB`,
      command: "POST /v1/files/NAME?parentId=ID",
      unit: "MB/s",
      rounds: 5,
      measure: (side, round) =>
        rate((STREAM_MIB * MIB) / 1e6, () => side.upload(folder, `stream-${side.name}-${round}`, big)),
      idle: (caller) => rate((STREAM_MIB * MIB) / 1e6, () => caller.upload(folder, "stream", big)),
    },
    {
      name: "content-down",
      measures: `one download of ${STREAM_MIB} MiB`,
      command: "GET /v1/nodes/ID/content",
      unit: "MB/s",
      rounds: 5,
      setUp: async (side) => void streams.set(side, await side.upload(folder, `download-${side.name}`, big)),
      measure: (side) =>
        rate((STREAM_MIB * MIB) / 1e6, async () => {
          expectBytes(await side.download(streams.get(side) ?? ""), STREAM_MIB * MIB);
        }),
      idle: (caller) => rate((STREAM_MIB * MIB) / 1e6, () => caller.download(`${STREAM_MIB * MIB}`)),
    },
  ];
}

async function bench(place: Place, options: BenchOptions): Promise<Report> {
  const idle = await startIdle();
  try {
    return await measure(place, options, idle);
  } finally {
    idle.close();
  }
}

async function measure(place: Place, options: BenchOptions, idle: Idle): Promise<Report> {
  const gateway = await place.gateway();
  const client = await productCaller(gateway, CONNECTIONS);
  const other = options.control ? await productCaller(gateway, CONNECTIONS) : plainCaller(gateway, CONNECTIONS);
  const names = ["client", options.control ? "control" : "node:http"] as const;
  // Product second, as in the other benchmark: the ratio says how it does beside the plain one.
  const sides = [
    { ...other, name: names[1] },
    { ...client, name: names[0] },
  ] as const;
  const folder = await client.makeFolder("bench");
  const results = [];
  const notes: string[] = [];
  for (const load of loads(folder)) {
    if (!isAsked(load.name, options)) continue;
    announce(load.name);
    const limits = watchLimits(gateway.pid);
    const cost = watchCost(load, gateway.pid);
    const figures = await runWorkload<Side>(cost.load, sides, options);
    notes.push(`${load.name}: ${limits()}${each(figures)}${cost.each()}${await besideIdle(load, idle, figures.unit)}`);
    results.push(figures);
  }
  await client.close();
  await other.close();
  // Killed, it would write no profile.
  await gateway.stop();
  return {
    bench: "gateway",
    measures: "the local gateway, asked by node:http and by the product's client; rates, more is better",
    machine: describeMachine(),
    sides: [names[1], names[0]],
    notes: [
      ...notes,
      "a rate is limited by the gateway where its thread is busy near 100 %, by the caller where this process is, by both",
      "where they fill all cores; else by the disk where the gateway writes, or by waiting for each other",
    ],
    results,
    skipped: [],
  };
}

async function startIdle(): Promise<Idle> {
  const script = fileURLToPath(new URL("support/idle-server.mjs", import.meta.url));
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "inherit"] });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  const caller = plainCaller(
    { baseUrl: `http://127.0.0.1:${String(port).trim()}`, token: "x".repeat(600) },
    CONNECTIONS,
  );
  return {
    pid: child.pid ?? 0,
    caller,
    close() {
      void caller.close();
      child.stdin.end();
    },
  };
}

/** What the same calls come to, and who is busy then. */
async function besideIdle({ idle }: Load, { caller, pid }: Idle, unit: string): Promise<string> {
  if (idle === undefined) return "";
  await idle(caller);
  const limits = watchLimits(pid, "the server");
  const values: number[] = [];
  for (let round = 0; round < IDLE_ROUNDS; round += 1) values.push(await idle(caller));
  return `\n    a server that does nothing: ${Math.round(spread(values).median)} ${unit} with node:http; ${limits()}`;
}

/** What one upload, page or MB takes of the gateway's processor: other programs hardly change that. */
function watchCost(load: Load, pid: number): { readonly load: Load; each(): string } {
  let seconds = 0;
  let count = 0;
  return {
    load: {
      ...load,
      async measure(side, round) {
        const before = { cpu: cpuSeconds(`/proc/${pid}`), now: performance.now() };
        const rate = await load.measure(side, round);
        seconds += cpuSeconds(`/proc/${pid}`) - before.cpu;
        count += (rate * (performance.now() - before.now)) / 1000;
        return rate;
      },
    },
    each: () =>
      `; ${((1000 * seconds) / count).toFixed(2)} ms of the gateway's CPU for each of the ${load.unit.split("/")[0]}`,
  };
}

/** Since now: how busy were the server, its main thread, this process with its callers, and the disk. */
function watchLimits(pid: number, name = "the gateway"): () => string {
  const read = () => ({
    all: cpuSeconds(`/proc/${pid}`),
    main: cpuSeconds(`/proc/${pid}/task/${pid}`),
    own: cpuSeconds("/proc/self"),
    written: Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]),
    now: performance.now(),
  });
  const before = read();
  return () => {
    const after = read();
    const seconds = (after.now - before.now) / 1000;
    const share = (what: "all" | "main" | "own") => `${Math.round(((after[what] - before[what]) / seconds) * 100)} %`;
    const written = Math.round((after.written - before.written) / 1e6 / seconds);
    return (
      `of one core ${name} took ${share("all")} (its main thread ${share("main")}), the callers ${share("own")}` +
      (written > 0 ? `; ${written} MB/s to the disk` : "")
    );
  };
}

/** User and system, of a process with all its threads or of one thread. */
function cpuSeconds(folder: string): number {
  const stat = readFileSync(`${folder}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** How long one page took, where it was pages that were counted. */
function each({ unit, first }: Figures): string {
  if (unit !== "pages/s") return "";
  return `; a page of ${PAGE} takes ${(1000 / spread(first).median).toFixed(1)} ms`;
}

function expectBytes(got: number, expected: number): void {
  if (got !== expected) throw new Error(`expected ${expected} bytes, got ${got}`);
}

function contentOf(size: number, times: number): Content {
  const block = Buffer.alloc(size, "wsfs ");
  const hash = createHash("sha256");
  for (let time = 0; time < times; time += 1) hash.update(block);
  return { block, times, hash: hash.digest("hex") };
}

async function inParallel(count: number, width: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      await work(index);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}

await runBench(WORKLOADS, bench);
