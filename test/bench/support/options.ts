/** What a benchmark may be told on its command line, and the machine it runs on. */
import { cpus, release } from "node:os";
import { parseArgs } from "node:util";

export interface BenchOptions {
  readonly json: boolean;
  /** Names of workloads; all when empty. */
  readonly only: readonly string[];
  /** Instead of each workload's own number. */
  readonly rounds: number | undefined;
  /** The same on both sides: what differs then is noise. */
  readonly control: boolean;
  /** Of the local workloads: a mount by fuse-native beside one by the own transport. */
  readonly library: boolean;
  /** After the table, what the mount's daemon did in each workload. */
  readonly daemon: boolean;
  /** Where to put CPU profiles of the product's processes. */
  readonly profile: string | undefined;
}

export const HELP = `flags: --json              one JSON document instead of the table
       --only NAME,NAME    these workloads
       --rounds N          rounds of each workload
       --control           the same on both sides, to see the noise
       --fuse-native       a mount by fuse-native beside one that speaks to the kernel itself (local workloads alone)
       --daemon            the daemon's processor time and requests in each workload as well
       --profile DIR       CPU profiles of daemons, gateways and commands, for Chrome's developer tools
`;

export class UsageError extends Error {}

/** Throws a UsageError when the arguments are not understood or name no workload of `known`. */
export function readOptions(args: readonly string[], known: readonly string[]): BenchOptions {
  const { json, only: lists, rounds, control, daemon, profile, "fuse-native": library } = parse(args);
  const only = lists.flatMap((names) => names.split(","));
  const stranger = only.find((name) => !known.includes(name));
  if (stranger !== undefined) {
    throw new UsageError(`--only: expected names out of ${known.join(", ")}, got "${stranger}"`);
  }
  if (rounds !== undefined && !/^[1-9]\d{0,3}$/.test(rounds)) {
    throw new UsageError(`--rounds: expected a number from 1 to 9999, got "${rounds}"`);
  }
  return { json, only, rounds: rounds === undefined ? undefined : Number(rounds), control, library, daemon, profile };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        json: { type: "boolean", default: false },
        only: { type: "string", multiple: true, default: [] },
        rounds: { type: "string" },
        control: { type: "boolean", default: false },
        "fuse-native": { type: "boolean", default: false },
        daemon: { type: "boolean", default: false },
        profile: { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly kernel: string;
  readonly node: string;
}

export function describeMachine(): Machine {
  const processors = cpus();
  const processor = processors[0]?.model ?? "unknown";
  return { cores: processors.length, processor, kernel: `Linux ${release()}`, node: process.version };
}
