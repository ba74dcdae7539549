/**
 * What pages of a folder with very many nodes cost the gateway's core: the first, the last, any
 * between, and a walk through all of them, in several orders. CPU time of this process beside wall
 * time, because other programs only lengthen the latter.
 *
 *   npm run bench -- listing [--nodes N] [--json]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SCOPES } from "../../src/contract/scopes.ts";
import { createGateway, type Gateway } from "../../src/gateway/core.ts";
import { openDatabase } from "../../src/gateway/store.ts";
import { SILENT } from "../../src/lib/log.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { makeFilledFolder } from "../support/many-nodes.ts";
import { createMemoryBlobs } from "../support/memory-blobs.ts";
import { seededRandom } from "../support/virtual-clock.ts";
import { readCountOptions } from "./support/count-options.ts";
import { describeMachine, tellFailure } from "./support/options.ts";

const PAGE = 1000;
const JUMPS = 20;
const ORDERS = ["name", "-name", "id", "createdAt", "-createdAt", "size"] as const;

interface Cost {
  /** Milliseconds. */
  readonly cpu: number;
  readonly wall: number;
}

interface Figures {
  readonly orderBy: string;
  readonly cold: Cost;
  readonly first: Cost;
  readonly last: Cost;
  /** The dearest of them. */
  readonly jump: Cost;
  readonly walk: Cost & { readonly pages: number; readonly lastPage: Cost };
}

async function measured<T>(work: () => Promise<T>): Promise<[T, Cost]> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  const result = await work();
  const { user, system } = process.cpuUsage(cpu);
  return [result, { cpu: (user + system) / 1000, wall: performance.now() - start }];
}

/** The least of several: what it costs when nothing else is in the way. */
async function best(work: () => Promise<Cost>): Promise<Cost> {
  const costs: Cost[] = [];
  for (let time = 0; time < 5; time += 1) costs.push(await work());
  return costs.reduce((least, cost) => (cost.cpu < least.cpu ? cost : least));
}

async function measureOrder(gateway: Gateway, token: string, folder: string, count: number, orderBy: string) {
  const page = async (query: Record<string, string>) => {
    const [answer, cost] = await measured(() =>
      gateway.handle({
        method: "GET",
        path: "/v1/nodes",
        query: { parentId: folder, pageSize: String(PAGE), orderBy, ...query },
        headers: { authorization: `Bearer ${token}` },
      }),
    );
    if (answer.status !== 200 || answer.body?.kind !== "json") throw new Error(`a page answered ${answer.status}`);
    const { items, next, totalCount } = JSON.parse(answer.body.text);
    if (totalCount !== count) throw new Error(`expected ${count} nodes, got ${totalCount}`);
    return { cost, size: Number(items.length), next: next === null ? null : String(next) };
  };
  const pages = Math.ceil(count / PAGE);
  const random = seededRandom(1);
  const at = async (pageNo: number) => (await page({ pageNo: String(pageNo) })).cost;
  const cold = await at(pages);
  const first = await best(() => at(1));
  const last = await best(() => at(pages));
  let jump: Cost = { cpu: 0, wall: 0 };
  for (let time = 0; time < JUMPS; time += 1) {
    const cost = await at(1 + Math.floor(random() * pages));
    if (cost.cpu > jump.cpu) jump = cost;
  }
  let walked = 0;
  let sum: Cost = { cpu: 0, wall: 0 };
  let lastPage = sum;
  for (let after: string | null = ""; after !== null; ) {
    const { cost, size, next } = await page({ after });
    walked += size;
    sum = { cpu: sum.cpu + cost.cpu, wall: sum.wall + cost.wall };
    lastPage = cost;
    after = next;
  }
  if (walked !== count) throw new Error(`walked ${walked} of ${count} nodes`);
  return { orderBy, cold, first, last, jump, walk: { ...sum, pages, lastPage } } satisfies Figures;
}

const show = ({ cpu, wall }: Cost) => `${cpu.toFixed(1)} / ${wall.toFixed(1)}`.padStart(18);

async function bench(count: number, json: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-bench-listing-"));
  const database = openDatabase(join(folder, "store.db"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      remove();
      process.exit(1);
    });
  }
  try {
    const blobs = createMemoryBlobs();
    const needs = { clock: systemClock, database, blobs, signingKey: Buffer.alloc(32, 1), log: SILENT };
    const gateway = createGateway(needs);
    const { id: workspace, root } = gateway.ensureWorkspace("bench");
    const token = gateway.issueToken({ scopes: SCOPES, workspace, ttlSeconds: 86_400 });
    process.stderr.write(`making ${count} nodes\n`);
    const [large, filling] = await measured(async () =>
      makeFilledFolder({
        database,
        clock: systemClock,
        workspace,
        parent: root,
        name: "large",
        count,
        // Neighbours by name are no neighbours in the store.
        nameOf: (index) => `file-${String((index * 7919) % count).padStart(8, "0")}-${index}.txt`,
        sizeOf: (index) => (index * 31) % 100_003,
      }),
    );
    const results: Figures[] = [];
    for (const orderBy of ORDERS) {
      process.stderr.write(`by ${orderBy}\n`);
      results.push(await measureOrder(gateway, token, large, count, orderBy));
    }
    if (json) {
      const report = { bench: "listing", machine: describeMachine(), nodes: count, pageSize: PAGE, filling, results };
      process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
      return;
    }
    const lines = results.map(
      ({ orderBy, cold, first, last, jump, walk }) =>
        `${orderBy.padEnd(12)}${show(cold)}${show(first)}${show(last)}${show(jump)}${show(walk.lastPage)}` +
        `${show({ cpu: walk.cpu / walk.pages, wall: walk.wall / walk.pages })}`,
    );
    const { cores, processor } = describeMachine();
    const titles = ["cold, last", "first", "last", "dearest jump", "last by after=", "walk, a page"];
    process.stdout.write(
      `listing: pages of ${PAGE} of a folder with ${count} nodes; CPU / wall, ms (${cores} cores, ${processor})\n` +
        `${"order".padEnd(12)}${titles.map((title) => title.padStart(18)).join("")}\n${lines.join("\n")}\n`,
    );
  } finally {
    database.close();
    remove();
  }
}

try {
  const options = readCountOptions("in the folder");
  if (options !== undefined) await bench(options.count, options.json);
} catch (error) {
  tellFailure(error);
}
