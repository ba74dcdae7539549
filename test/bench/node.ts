/**
 * Releases of Node beside each other: the one that runs this, and 24 with the SQLite that there is for it. Not the drivers
 * alone: where better-sqlite3 has no build for a Node, the two are never in one process.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";
import { runBench } from "./support/bench.ts";
import type { Figures, Report } from "./support/figures.ts";
import { describeMachine } from "./support/options.ts";
import { announce, isAsked, type Observed, runWorkload, type Workload } from "./support/rounds.ts";

const OTHER = "24";
const TYPESCRIPT = fileURLToPath(new URL("../../scripts/typescript.mjs", import.meta.url));
const OTHER_NODE = fileURLToPath(new URL("../../scripts/other-node.mjs", import.meta.url));
const ROWS = fileURLToPath(new URL("support/rows.ts", import.meta.url));
const FILES = 1000;
const COMMANDS = 5;

const rowsSchema = z.object({ driver: z.string(), commits: z.number(), reads: z.number() });

interface Side extends Observed {
  readonly node: string;
  readonly place: Place;
  mount?: TestMount;
}

function rowsOn({ node }: Side): z.infer<typeof rowsSchema> {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-bench-rows-"));
  try {
    const args = ["--import", TYPESCRIPT, ROWS, folder];
    return rowsSchema.parse(JSON.parse(execFileSync(node, args, { encoding: "utf8" })));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const WORKLOADS: readonly Workload<Side>[] = [
  {
    name: "commits",
    measures: "transactions of one new row and one change of it, a second",
    command: "node test/bench/support/rows.ts",
    unit: "rows/s",
    rounds: 5,
    measure: async (side) => rowsOn(side).commits,
  },
  {
    name: "reads",
    measures: "rows found by an index, a second",
    command: "node test/bench/support/rows.ts",
    unit: "rows/s",
    rounds: 5,
    measure: async (side) => rowsOn(side).reads,
  },
  {
    name: "create",
    measures: `${FILES} files of 10 bytes made in a mount, a second`,
    command: "for i in {1..1000}; do echo 123456789 > $i; done",
    unit: "files/s",
    rounds: 5,
    async setUp(side) {
      side.mount = await side.place.mount(await side.place.gateway());
    },
    async measure(side, round) {
      const make = `mkdir r${round} && cd r${round} && for i in {1..${FILES}}; do echo 123456789 > $i; done`;
      const begun = performance.now();
      check((await side.mount?.sh(make)) ?? { code: 1, signal: null, stdout: "", stderr: "no mount" });
      return FILES / ((performance.now() - begun) / 1000);
    },
    cleanUp: async (side) => void (await side.mount?.umount("--drain")),
  },
  {
    name: "command",
    measures: `a command that asks a mount for nothing, the mean of ${COMMANDS}`,
    command: "wsfs status /nonexistent",
    unit: "s",
    rounds: 5,
    async measure(side) {
      const begun = performance.now();
      for (let index = 0; index < COMMANDS; index += 1) await side.place.wsfs(["status", "/nonexistent"]);
      return (performance.now() - begun) / 1000 / COMMANDS;
    },
  },
];

await runBench(
  WORKLOADS.map(({ name }) => name),
  async (place, options): Promise<Report> => {
    const path = execFileSync(process.execPath, [OTHER_NODE, OTHER], { encoding: "utf8" }).trim();
    const other = createPlace(place.program, undefined, path);
    try {
      const sides: readonly [Side, Side] = [
        { node: process.execPath, place },
        options.control ? { node: process.execPath, place } : { node: path, place: other },
      ];
      const results: Figures[] = [];
      for (const workload of WORKLOADS) {
        if (!isAsked(workload.name, options)) continue;
        announce(workload.name);
        results.push(await runWorkload(workload, sides, options));
      }
      const names = sides.map((side) => {
        const version = execFileSync(side.node, ["--version"], { encoding: "utf8" }).trim();
        return `Node ${version}, ${rowsOn(side).driver}`;
      });
      return {
        bench: "node",
        measures: "releases of Node with the SQLite that each has",
        machine: describeMachine(),
        sides: [names[0] ?? "", names[1] ?? ""],
        notes: [],
        results,
        skipped: [],
      };
    } finally {
      await other.cleanUp();
    }
  },
);
