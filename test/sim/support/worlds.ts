/** The kinds of world histories are played in: what the tests run by fixed seeds, and a soak by drawn ones. */
import { FEATURE_NAMES, type Feature } from "../../../src/contract/features.ts";
import type { RunOptions } from "./run.ts";
import { FAULTS } from "./transport.ts";

export interface WorldKind {
  /** As its test is called. */
  readonly name: string;
  readonly file: string;
  readonly options: Omit<RunOptions, "count" | "seed">;
}

/** A mount alone is to show nothing of it; several draw their own. */
const LAG = { path: 3_000, journal: 5_000, id: 0 };

export const ONE: WorldKind = {
  name: "a mount alone shows what a plain folder would, at every moment",
  file: "histories-one-mount.test.ts",
  options: { mounts: 1, lag: LAG },
};

export const TWO: WorldKind = {
  name: "two mounts of one workspace end in agreement, with every finished content kept",
  file: "histories-several-mounts.test.ts",
  options: { mounts: 2 },
};

export const THREE: WorldKind = {
  name: "three mounts of one workspace end in agreement, with every finished content kept",
  file: "histories-several-mounts.test.ts",
  options: { mounts: 3 },
};

export const PAST: WorldKind = {
  name: "the past of two mounts is what was recorded, and a tree restored and an undo come to it",
  file: "past.test.ts",
  options: { mounts: 2, hasPast: true },
};

const KEYS: readonly Feature[] = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"];
const LACKS: readonly (readonly [name: string, lacks: readonly Feature[]])[] = [
  ["revisions", ["revisions"]],
  ["the journal", ["journal"]],
  ["positions", ["positions"]],
  ["keys", KEYS],
  ["conditions", ["conditions"]],
  ["hashes", ["hashes"]],
  ["versions and references", ["versions", "references"]],
  ["attributes", ["attributes"]],
  ["anything of it", FEATURE_NAMES],
];

/** Without conditions a request that arrives when nobody thinks of it any more undoes what came after it. */
const faultsOf = (lacks: readonly Feature[]) =>
  lacks.includes("conditions") ? FAULTS.filter((fault) => fault !== "late") : FAULTS;

const lesser = (mounts: 1 | 2, what: string): readonly WorldKind[] =>
  LACKS.map(([name, lacks]) => ({
    name: `${what} on a gateway without ${name}`,
    file: "histories-lesser-gateways.test.ts",
    options: { mounts, lacks, faults: faultsOf(lacks), hasKeys: true, ...(mounts === 1 ? { lag: LAG } : {}) },
  }));

export const LESSER: readonly WorldKind[] = [
  ...lesser(1, "a mount alone is a plain folder"),
  ...lesser(2, "two mounts agree"),
];

/** What to type to see a failure again. */
export function commandFor({ name, file }: WorldKind, { seed, path }: { seed: number; path: string }): string {
  const test = `npx vitest run --config=test/vitest.config.ts test/sim/${file} -t '${name}'`;
  return `SIM_SEED=${seed} SIM_PATH=${path} ${test}`;
}
