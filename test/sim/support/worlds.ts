/** The kinds of world for random histories: the tests play them by fixed seeds, a soak by drawn ones. */
import type { Features } from "../../../src/contract/features.ts";
import { PLAIN, PLAINEST, without } from "../../support/features.ts";
import { playHistories, type RunOptions, runSettings } from "./run.ts";
import { createTally, describeTally } from "./tally.ts";
import { FAULTS } from "./transport.ts";

export interface WorldKind {
  /** As its test is called. */
  readonly name: string;
  readonly options: Omit<RunOptions, "count" | "seed">;
}

/** A mount alone is to show nothing of it; several draw their own. */
const LAG = { path: 3_000, journal: 5_000, id: 0 };

export const ONE: WorldKind = {
  name: "a mount alone shows what a plain folder would, at every moment",
  options: { mounts: 1, lag: LAG },
};

export const TWO: WorldKind = {
  name: "two mounts of one workspace end in agreement, with every finished content kept",
  options: { mounts: 2 },
};

export const THREE: WorldKind = {
  name: "three mounts of one workspace end in agreement, with every finished content kept",
  options: { mounts: 3 },
};

export const PAST: WorldKind = {
  name: "the past of two mounts is what was recorded, and a tree restored and an undo come to it",
  options: { mounts: 2, hasPast: true },
};

const KINDS: readonly (readonly [name: string, features: Features])[] = [
  ["a gateway without hashes", without("hashes")],
  ["a gateway without attributes", without("attributes")],
  ["a plain gateway", PLAIN],
  ["the plainest gateway", PLAINEST],
];

/** Without conditions a request that arrives when nobody thinks of it any more undoes what came after it. */
const faultsOf = ({ isFull }: Features) => (isFull ? FAULTS : FAULTS.filter((fault) => fault !== "late"));

const lesser = (mounts: 1 | 2, what: string): readonly WorldKind[] =>
  KINDS.map(([name, features]) => ({
    name: `${what} on ${name}`,
    options: { mounts, features, faults: faultsOf(features), ...(mounts === 1 ? { lag: LAG } : {}) },
  }));

export const LESSER: readonly WorldKind[] = [
  ...lesser(1, "a mount alone is a plain folder"),
  ...lesser(2, "two mounts agree"),
];

/** Histories of the kind, as many as a test plays; tells what they were made of, and returns a failure as text. */
export async function playKind({ name, options }: WorldKind, count: number): Promise<string | undefined> {
  const settings = runSettings(count, 1);
  console.log(`${name}: SIM_SEED=${settings.seed} SIM_RUNS=${settings.count}`);
  const tally = createTally();
  const failure = await playHistories({ ...options, ...settings, tally });
  console.log(describeTally(tally));
  return failure?.text;
}

/** What to type to see a failure again. */
export function commandFor({ name, options }: WorldKind, { seed, path }: { seed: number; path: string }): string {
  const file = options.hasPast === true ? "past" : "histories";
  const test = `npx vitest run --config=test/vitest.config.ts test/sim/${file}.test.ts -t '${name}'`;
  return `SIM_SEED=${seed} SIM_PATH=${path} ${test}`;
}
