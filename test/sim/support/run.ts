/**
 * Random histories by fast-check: from one seed, and shrunk to a short one when something does not hold. `SIM_RUNS` and
 * `SIM_SEED` change count and seed; the same seed is the same run.
 */
import fc from "fast-check";
import { ALL_FEATURES, type Features } from "../../../src/contract/features.ts";
import { type HistoryOptions, NAMES, playHistory } from "./history.ts";
import type { Program } from "./programs.ts";
import { describeStep, type Step, stepsOf } from "./steps.ts";

export interface RunOptions extends Omit<HistoryOptions, "seed"> {
  readonly count: number;
  readonly seed: number;
  readonly isOutside?: boolean;
  /** Steps of one history. */
  readonly lengths?: { readonly min: number; readonly max: number };
  /** Where in the run to begin, as a failure names it; only that history is played. */
  readonly path?: string;
  /** Called with the first that fails, before it is shrunk. */
  readonly onFailure?: (error: Error) => void;
  /** Shrinking ends after this many milliseconds of real time. */
  readonly shrinkMs?: number;
}

export interface Failure {
  readonly seed: number;
  readonly path: string;
  /** Histories played before the first that failed. */
  readonly runs: number;
  readonly steps: readonly Step[];
  readonly worldSeed: number;
  readonly error: Error;
  readonly text: string;
}

/** Undefined when everything held in all of them. */
export async function playHistories(options: RunOptions): Promise<Failure | undefined> {
  const { count, seed, lengths = { min: 5, max: 25 }, isOutside = options.mounts > 1, shrinkMs = 30_000 } = options;
  const history = fc.record({
    steps: stepsOf({ mounts: options.mounts, isOutside }, lengths),
    worldSeed: fc.integer({ min: 1, max: 2 ** 20 }).map((value) => value),
  });
  let shrinkUntil = Number.POSITIVE_INFINITY;
  let last: { error: Error; steps: readonly Step[]; worldSeed: number } | undefined;
  const property = fc.asyncProperty(history, async ({ steps, worldSeed }) => {
    // Out of time, a shorter history counts as one that holds.
    if (Date.now() > shrinkUntil) return;
    try {
      await playHistory(withoutRefused(steps, options.features), { ...options, seed: worldSeed });
    } catch (error) {
      const failed = error instanceof Error ? error : new Error(String(error));
      if (last === undefined) {
        shrinkUntil = Date.now() + shrinkMs;
        options.onFailure?.(failed);
      }
      last = { error: failed, steps, worldSeed };
      throw error;
    }
  });
  const result = await fc.check(property, {
    // A path names one history.
    numRuns: options.path === undefined ? count : 1,
    seed,
    ...(options.path === undefined ? {} : { path: options.path }),
  });
  if (!result.failed || last === undefined) return undefined;
  const { error, steps, worldSeed } = last;
  const path = result.counterexamplePath ?? "";
  const text = [
    `history ${result.numRuns} of SIM_SEED=${seed} fails; alone: SIM_SEED=${seed} SIM_PATH=${path}`,
    `world seed ${worldSeed}, ${steps.length} steps after ${result.numShrinks} shrinks:`,
    ...steps.map((step) => `  ${describeStep(step, NAMES)}`),
    `${error.message}`,
  ].join("\n");
  return { seed, path, runs: result.numRuns, steps, worldSeed, error, text };
}

/** Links are refused where there are no attributes, hard ones also without hashes or versions; an ordinary folder would make them. */
function withoutRefused(steps: readonly Step[], features: Features = ALL_FEATURES): readonly Step[] {
  const { isFull, hashes, attributes } = features;
  const isRefused = ({ do: what }: Program) =>
    (what === "symlink" && !attributes) || (what === "link" && !(attributes && hashes && isFull));
  const replace = (program: Program): Program => (isRefused(program) ? { do: "read", path: program.path } : program);
  return steps.map((step) => {
    if ("program" in step) return { ...step, program: replace(step.program) };
    return step.do === "race" ? { ...step, programs: step.programs.map(replace) } : step;
  });
}

/** Count and seed of a run: from the environment, else the given ones. */
export function runSettings(count: number, seed: number): { count: number; seed: number; path?: string } {
  const { SIM_RUNS, SIM_SEED, SIM_PATH } = process.env;
  return {
    count: SIM_RUNS === undefined ? count : Number(SIM_RUNS),
    seed: SIM_SEED === undefined ? seed : Number(SIM_SEED),
    ...(SIM_PATH === undefined ? {} : { path: SIM_PATH }),
  };
}
