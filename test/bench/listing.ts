/**
 * What pages of a folder with very many nodes cost the gateway's core: the first, the last, any
 * between, and a walk through all of them, in several orders. And as many nodes in a tree, all of
 * them in pages and as a stream, in turn. CPU time of this process beside wall time, because other
 * programs only lengthen the latter.
 *
 *   npm run bench -- listing [--nodes N] [--json]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
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
/** Files in each folder of the tree. */
const TREE_FILES = 100;
const TREE_ROUNDS = 3;
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

interface TreeFigures {
  readonly way: "pages" | "stream";
  /** The rates of all rounds. */
  readonly nodesPerSecond: readonly number[];
  readonly nodesPerCpuSecond: readonly number[];
  /** The longest time, in milliseconds, that another request would have waited for its turn, round by round. */
  readonly longestWaits: readonly number[];
}

/** All nodes of a tree, in pages of one snapshot and as a stream, in turn. */
async function measureTree(gateway: Gateway, token: string, path: string, count: number): Promise<TreeFigures[]> {
  const ask = (query: Record<string, string>, headers: Record<string, string> = {}) =>
    gateway.handle({
      method: "GET",
      path: "/v1/nodes",
      query: { path, recursive: "true", ...query },
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
  const ways = {
    async pages() {
      let nodes = 0;
      for (let after: string | null = ""; after !== null; ) {
        const { body } = await ask({ pageSize: String(PAGE), after });
        if (body?.kind !== "json") throw new Error("a page is JSON");
        // The reader's work is not measured: only the end of the page is parsed.
        const page: { totalCount: number; next: string | null } = JSON.parse(
          `{${body.text.slice(body.text.lastIndexOf('"totalCount":'))}`,
        );
        nodes = page.totalCount;
        after = page.next;
      }
      return nodes;
    },
    async stream() {
      const { body } = await ask({}, { accept: "application/x-ndjson" });
      if (body?.kind !== "bytes") throw new Error("a stream is bytes");
      let nodes = 0;
      let last: Uint8Array = new Uint8Array();
      for await (const chunk of body.stream) last = chunk;
      const lines = Buffer.from(last).toString().trimEnd().split("\n");
      const end: { complete: true; count: number } = JSON.parse(lines.at(-1) ?? "");
      nodes = end.count;
      return nodes;
    },
  };
  const figures = {
    pages: { wall: [] as number[], cpu: [] as number[], waits: [] as number[] },
    stream: { wall: [] as number[], cpu: [] as number[], waits: [] as number[] },
  };
  for (let round = 0; round < TREE_ROUNDS; round += 1) {
    for (const way of ["pages", "stream"] as const) {
      // The sorted list of the pages is kept from the second round on.
      const waits = monitorEventLoopDelay({ resolution: 1 });
      waits.enable();
      const [nodes, { cpu, wall }] = await measured(ways[way]);
      waits.disable();
      if (nodes !== count) throw new Error(`expected ${count} nodes, got ${nodes}`);
      figures[way].wall.push(Math.round((1000 * nodes) / wall));
      figures[way].cpu.push(Math.round((1000 * nodes) / cpu));
      // Between pages that are asked for without HTTP, nothing else has a turn.
      if (way === "stream") figures[way].waits.push(waits.max / 1e6);
    }
  }
  return (["pages", "stream"] as const).map((way) => ({
    way,
    nodesPerSecond: figures[way].wall,
    nodesPerCpuSecond: figures[way].cpu,
    longestWaits: figures[way].waits,
  }));
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
    process.stderr.write("a tree\n");
    const { id: treeWorkspace, root: treeRoot } = gateway.ensureWorkspace("tree");
    const folders = Math.max(1, Math.round(count / (TREE_FILES + 1)));
    for (let index = 0; index < folders; index += 1) {
      const place = { workspace: treeWorkspace, parent: treeRoot, name: `folder-${index}` };
      makeFilledFolder({ database, clock: systemClock, ...place, count: TREE_FILES });
    }
    const treeToken = gateway.issueToken({ scopes: SCOPES, workspace: treeWorkspace, ttlSeconds: 86_400 });
    const tree = await measureTree(gateway, treeToken, "/", folders * (TREE_FILES + 1));
    if (json) {
      const report = {
        bench: "listing",
        machine: describeMachine(),
        nodes: count,
        pageSize: PAGE,
        filling,
        results,
        tree,
      };
      process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
      return;
    }
    const lines = results.map(
      ({ orderBy, cold, first, last, jump, walk }) =>
        `${orderBy.padEnd(12)}${show(cold)}${show(first)}${show(last)}${show(jump)}${show(walk.lastPage)}` +
        `${show({ cpu: walk.cpu / walk.pages, wall: walk.wall / walk.pages })}`,
    );
    const treeLines = tree.map(
      ({ way, nodesPerSecond, nodesPerCpuSecond, longestWaits }) =>
        `${way.padEnd(12)}${nodesPerSecond.join(", ").padStart(36)}${nodesPerCpuSecond.join(", ").padStart(36)}` +
        longestWaits
          .map((wait) => wait.toFixed(1))
          .join(", ")
          .padStart(36),
    );
    const { cores, processor } = describeMachine();
    const titles = ["cold, last", "first", "last", "dearest jump", "last by after=", "walk, a page"];
    process.stdout.write(
      `listing: pages of ${PAGE} of a folder with ${count} nodes; CPU / wall, ms (${cores} cores, ${processor})\n` +
        `${"order".padEnd(12)}${titles.map((title) => title.padStart(18)).join("")}\n${lines.join("\n")}\n\n` +
        `all nodes of a tree of ${folders} folders with ${TREE_FILES} files each, round by round\n` +
        `${"".padEnd(12)}${"nodes/s".padStart(36)}${"nodes/s of CPU".padStart(36)}${"longest wait, ms".padStart(36)}\n` +
        `${treeLines.join("\n")}\n`,
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
