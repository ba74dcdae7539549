/**
 * What the local gateway takes, as a process of its own: small uploads, listings, content up and
 * down; once through the product's client, once through plain node:http. Both run in this process.
 */
import { createHash } from "node:crypto";
import type { Place } from "../support/wsfs.ts";
import { runBench } from "./support/bench.ts";
import { type Caller, type Content, plainCaller, productCaller } from "./support/callers.ts";
import type { Report } from "./support/figures.ts";
import { type BenchOptions, describeMachine } from "./support/options.ts";
import { announce, isAsked, type Observed, runWorkload, type Workload } from "./support/rounds.ts";

const CONNECTIONS = 16;
const UPLOADS = 1000;
const LISTED = 5000;
const PAGE = 1000;
const MIB = 1024 ** 2;
const STREAM_MIB = 256;
const BLOCK = 64 * 1024;

interface Side extends Observed, Pick<Caller, "upload" | "download" | "list"> {
  readonly name: string;
}

const WORKLOADS = ["uploads", "listing", "content-up", "content-down"] as const;
type Load = Workload<Side> & { readonly name: (typeof WORKLOADS)[number] };

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
  const nodes = new Map<Side, string>();
  let filled = 0;

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
    },
    {
      name: "content-down",
      measures: `one download of ${STREAM_MIB} MiB`,
      command: "GET /v1/nodes/ID/content",
      unit: "MB/s",
      rounds: 5,
      setUp: async (side) => void nodes.set(side, await side.upload(folder, `download-${side.name}`, big)),
      measure: (side) =>
        rate((STREAM_MIB * MIB) / 1e6, async () => {
          const bytes = await side.download(nodes.get(side) ?? "");
          if (bytes !== STREAM_MIB * MIB) throw new Error(`expected ${STREAM_MIB * MIB} bytes, got ${bytes}`);
        }),
    },
  ];
}

async function bench(place: Place, options: BenchOptions): Promise<Report> {
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
  for (const load of loads(folder)) {
    if (!isAsked(load.name, options)) continue;
    announce(load.name);
    results.push(await runWorkload<Side>(load, sides, options));
  }
  await client.close();
  await other.close();
  return {
    bench: "gateway",
    measures: "the local gateway, asked by node:http and by the product's client; rates, more is better",
    machine: describeMachine(),
    sides: [names[1], names[0]],
    notes: [],
    results,
    skipped: [],
  };
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
