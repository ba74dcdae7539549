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
export type Observed = Partial<Pick<Side, "finishWork" | "work">>;

export async function runWorkload<S extends Observed>(
  workload: Workload<S>,
  [first, second]: readonly [S, S],
  options: Pick<BenchOptions, "rounds">,
): Promise<Figures> {
  const contestants = [first, second].map((side) => ({ side, isPeer: false }));
  const [one, two] = await measureRounds(workload, contestants, options.rounds ?? workload.rounds);
  const { name, measures, command, unit } = workload;
  const daemon = two?.daemon ?? one?.daemon;
  const values = { first: one?.values ?? [], second: two?.values ?? [] };
  return { workload: name, measures, command, unit, ...values, ...(daemon === undefined ? {} : { daemon }) };
}

/** What came of one side. */
export interface Measured {
  /** One a round. */
  readonly values: readonly number[];
  /** What its daemon did in the last round. */
  readonly daemon?: DaemonWork;
  /** Of a peer: why it has no more values. */
  readonly failure?: string;
}

/** All sides in turn, round by round. `isPeer`: a failure there is a result, and that side is left out from then on. */
export async function measureRounds<S extends Observed>(
  workload: Workload<S>,
  contestants: readonly { readonly side: S; readonly isPeer: boolean }[],
  rounds: number,
): Promise<Measured[]> {
  const states = contestants.map((contestant) => ({
    ...contestant,
    values: [] as number[],
    daemon: undefined as DaemonWork | undefined,
    failure: undefined as string | undefined,
  }));
  const each = async (work: (state: (typeof states)[number]) => Promise<void>) => {
    for (const state of states) {
      if (state.failure !== undefined) continue;
      try {
        await work(state);
      } catch (error) {
        if (!state.isPeer) throw error;
        state.failure = error instanceof Error ? error.message : String(error);
        state.values = [];
      }
    }
  };
  await each(async ({ side }) => workload.setUp?.(side));
  for (let round = 1; round <= rounds; round += 1) {
    await each(async (state) => {
      const { side } = state;
      await workload.prepare?.(side, round);
      await side.finishWork?.();
      await workload.ready?.(side, round);
      const before = await side.work?.();
      state.values.push(await workload.measure(side, round));
      const after = await side.work?.();
      if (before !== undefined && after !== undefined) state.daemon = difference(after, before);
    });
  }
  await each(async ({ side }) => workload.cleanUp?.(side));
  return states.map(({ values, daemon, failure }) => ({
    values,
    ...(daemon === undefined ? {} : { daemon }),
    ...(failure === undefined ? {} : { failure }),
  }));
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
