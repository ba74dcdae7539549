/** The kinds of world histories are played in: what the tests run by fixed seeds, and a soak by drawn ones. */
import type { Features } from "../../../src/contract/features.ts";
import { PLAIN, PLAINEST, without } from "../../support/features.ts";
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
    file: "histories-lesser-gateways.test.ts",
    options: { mounts, features, faults: faultsOf(features), ...(mounts === 1 ? { lag: LAG } : {}) },
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
