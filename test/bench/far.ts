/**
 * What a mount costs whose gateway is far away, beside a plain folder and a mount by rclone (WebDAV, with its full cache), in
 * one run. A relay between each mount and what it shows makes both as far away, and the line as narrow. Writes far.json and
 * far.svg.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { check, type Place } from "../support/wsfs.ts";
import { runBench } from "./support/bench.ts";
import { compileCalls } from "./support/calls.ts";
import { toChart } from "./support/chart.ts";
import { LATENCY_MS } from "./support/cold-workloads.ts";
import { type FarContent, farGateway, putContent } from "./support/far-content.ts";
import { type FarReport, type FarRow, farTable } from "./support/far-report.ts";
import { FAR_WORKLOADS, farWorkloads } from "./support/far-workloads.ts";
import type { Tools } from "./support/local-workloads.ts";
import { type BenchOptions, describeMachine, UsageError } from "./support/options.ts";
import { rcloneSide, whyNoRclone } from "./support/rclone-side.ts";
import { type Line, startRelay } from "./support/relay.ts";
import { announce, isAsked, measureRounds, type Workload } from "./support/rounds.ts";
import { makeSampleTar } from "./support/sample-tree.ts";
import { type ColdSide, coldMountSide, plainSide } from "./support/sides.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const ROUNDS = 3;
const PEERS = ["rclone"];

interface Contestant {
  readonly name: string;
  readonly side: ColdSide;
  /** A workload that fails there is a result. */
  readonly isPeer: boolean;
}

async function bench(place: Place, options: BenchOptions, other: Place) {
  const line = readLine(options);
  const peers = options.peers ?? PEERS;
  const stranger = peers.find((peer) => !PEERS.includes(peer) && peer !== "none");
  if (stranger !== undefined) throw new UsageError(`--peers: expected ${PEERS.join(", ")} or none, got "${stranger}"`);
  writeFileSync(join(place.path("home"), ".gitconfig"), "[safe]\n\tdirectory = *\n");
  const whyNot = peers.includes("rclone") ? await whyNoRclone(place) : "not asked for";
  const tools: Tools = {
    place,
    calls: await compileCalls(place),
    sampleTar: await makeSampleTar(place),
    repository: PROJECT,
  };
  const { cold, local } = farWorkloads(tools);
  const asked = <W extends { name: string }>(all: readonly W[]) => all.filter(({ name }) => isAsked(name, options));
  const contents = new Set<FarContent>(asked(cold).map(({ content }) => content));
  const gateway = await farGateway(tools, contents, 0);
  const relayed = { ...gateway, baseUrl: await startRelay(place, new URL(gateway.baseUrl).port, line) };
  const plain = await plainSide(place, "ext4");
  await putContent(tools, plain.folder, contents);
  const rclone = whyNot === undefined ? await rcloneSide(place, "rclone", line) : undefined;
  if (rclone !== undefined) await putContent(tools, rclone.source, contents);
  const contestants: Contestant[] = [
    { name: "plain", side: plain, isPeer: false },
    ...(rclone === undefined ? [] : [{ name: "rclone", side: rclone, isPeer: true }]),
    ...(options.beside === undefined
      ? []
      : [{ name: "other", side: coldMountSide(other, relayed, "other"), isPeer: false }]),
    { name: "wsfs", side: coldMountSide(place, relayed, "wsfs"), isPeer: false },
  ];
  const rounds = options.rounds ?? ROUNDS;
  const rows: FarRow[] = [];
  try {
    for (const workload of asked(cold)) rows.push(await row(workload, contestants, rounds));
    const writers = asked(local).length === 0 ? [] : await withOwnGateways(contestants, place, other, line);
    for (const { side } of writers) await side.forget();
    for (const workload of asked(local)) rows.push(await row(workload, writers, rounds));
  } finally {
    await rclone?.end();
  }
  const version = whyNot === undefined ? check(await place.sh("rclone version")).stdout.split("\n")[0] : undefined;
  const report: FarReport = {
    bench: "far",
    machine: describeMachine(),
    line: { ...line, rate: options.rate },
    sides: contestants.map(({ name }) => name),
    notes: [
      ...(version === undefined ? [`no rclone: ${whyNot}`] : [`rclone: ${version}`]),
      ...(options.asUser ? ["all of it as an ordinary user"] : []),
    ],
    rows,
  };
  const folder = resolve(options.out);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "far.json"), `${JSON.stringify(report, undefined, 2)}\n`);
  writeFileSync(join(folder, "far.svg"), toChart(report));
  const text = `${farTable(report, options)}\nwritten: ${join(folder, "far.json")}, ${join(folder, "far.svg")}\n`;
  return { json: `${JSON.stringify(report)}\n`, text };
}

/** What two mounts of one workspace make would meet. */
async function withOwnGateways(
  contestants: readonly Contestant[],
  place: Place,
  other: Place,
  line: Line,
): Promise<Contestant[]> {
  if (other === place) return [...contestants];
  const gateway = await other.gateway({ name: "own" });
  const relayed = { ...gateway, baseUrl: await startRelay(other, new URL(gateway.baseUrl).port, line) };
  return contestants.map((contestant) =>
    contestant.name === "other" ? { ...contestant, side: coldMountSide(other, relayed, "other-local") } : contestant,
  );
}

async function row(workload: Workload<ColdSide>, contestants: readonly Contestant[], rounds: number): Promise<FarRow> {
  announce(workload.name);
  const results = await measureRounds(workload, contestants, rounds);
  const { name, measures, command } = workload;
  const bySide = contestants.map((contestant, index) => [contestant.name, results[index] ?? { values: [] }] as const);
  return { workload: name, measures, command, seconds: Object.fromEntries(bySide) };
}

/** "100mbit" or "10gbit", as tc(8) has it. */
function readLine({ rtt, rate }: BenchOptions): Line {
  const found = rate === undefined ? undefined : /^(\d+(?:\.\d+)?)(k|m|g)bit$/.exec(rate);
  if (found === null) throw new UsageError(`--rate: expected a rate as 100mbit, got "${rate}"`);
  const bits =
    found === undefined ? undefined : Number(found[1]) * { k: 1e3, m: 1e6, g: 1e9 }[found[2] as "k" | "m" | "g"];
  if (bits === 0) throw new UsageError("--rate: expected more than 0");
  return { milliseconds: rtt ?? LATENCY_MS, ...(bits === undefined ? {} : { bytesPerSecond: bits / 8 }) };
}

await runBench(FAR_WORKLOADS, bench);
