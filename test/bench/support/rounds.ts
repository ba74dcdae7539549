/** Runs workloads on two sides in turn: first, second, first, second, so that a slow minute hits both. */

import type { Figures, Unit } from "./figures.ts";
import type { BenchOptions } from "./options.ts";
import type { DaemonWork, Side } from "./sides.ts";

export interface Workload<S> {
  readonly name: string;
  /** In a sentence. */
  readonly measures: string;
  /** What is run, as a person would type it. */
  readonly command: string;
  readonly unit: Unit;
  readonly rounds: number;
  /** Once on each side, before the first round. Not timed; nor are the next three. */
  setUp?(side: S): Promise<void>;
  /** Before a round; what it leaves under way is waited for. */
  prepare?(side: S, round: number): Promise<void>;
  /** Right before it is measured. */
  ready?(side: S, round: number): Promise<void>;
  /** Once on each side, at the end. */
  cleanUp?(side: S): Promise<void>;
  /** The figure, in `unit`. Rejects when what ran did not do what it should. */
  measure(side: S, round: number): Promise<number>;
}

/** What a side can do besides what the workload needs of it. */
export type Observed = Partial<Pick<Side, "settle" | "work">>;

export async function runWorkload<S extends Observed>(
  workload: Workload<S>,
  [first, second]: readonly [S, S],
  options: Pick<BenchOptions, "rounds">,
): Promise<Figures> {
  const rounds = options.rounds ?? workload.rounds;
  const values = { first: [] as number[], second: [] as number[] };
  let daemon: DaemonWork | undefined;
  const sides = [
    [first, values.first],
    [second, values.second],
  ] as const;
  for (const [side] of sides) await workload.setUp?.(side);
  for (let round = 1; round <= rounds; round += 1) {
    for (const [side, measured] of sides) {
      await workload.prepare?.(side, round);
      await side.settle?.();
      await workload.ready?.(side, round);
      const before = await side.work?.();
      measured.push(await workload.measure(side, round));
      const after = await side.work?.();
      if (before !== undefined && after !== undefined) daemon = difference(after, before);
    }
  }
  for (const [side] of sides) await workload.cleanUp?.(side);
  const { name, measures, command, unit } = workload;
  return { workload: name, measures, command, unit, ...values, ...(daemon === undefined ? {} : { daemon }) };
}

function difference(after: DaemonWork, before: DaemonWork): DaemonWork {
  const requests = Object.entries(after.requests)
    .map(([name, count]): [string, number] => [name, count - (before.requests[name] ?? 0)])
    .filter(([, count]) => count > 0);
  return { requests: Object.fromEntries(requests), processor: after.processor - before.processor };
}

/** One line for each workload on standard error: they take a while. */
export function announce(name: string): void {
  process.stderr.write(`bench: ${name}\n`);
}

/** Whether the command line asks for it. */
export function isAsked(name: string, options: Pick<BenchOptions, "only">): boolean {
  return options.only.length === 0 || options.only.includes(name);
}
