/** What a benchmark may be told on its command line, and the machine it runs on. */
import { cpus, release } from "node:os";
import { basename } from "node:path";
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
  /** Of the local workloads: a mount by the build with this command beside one by ours. */
  readonly beside: string | undefined;
  /** The kernel reads and writes no file of the mount by itself. */
  readonly noPassthrough: boolean;
  /** Everything belongs to, and is done by, a user who is not root. */
  readonly asUser: boolean;
  /** After the table, what the mount's daemon did in each workload. */
  readonly daemon: boolean;
  /** Of the far benchmark: the round trip in milliseconds, the rate of the line, and what else is measured. */
  readonly rtt: number | undefined;
  readonly rate: string | undefined;
  readonly peers: readonly string[] | undefined;
  /** Where the far benchmark writes. */
  readonly out: string;
  /** Where to put CPU profiles of the product's processes. */
  readonly profile: string | undefined;
}

const HELP = `flags: --json              one JSON document instead of the table
       --only NAME,NAME    these workloads
       --rounds N          rounds of each workload
       --control           the same on both sides, to see the noise
       --fuse-native       a mount by fuse-native beside one that speaks to the kernel itself (local workloads alone)
       --beside MAIN       a mount by another build (its dist/cli/main.js) beside one by this (local workloads, start of the queue)
       --no-passthrough    the mount's daemon serves all bytes
       --as-user           as an ordinary user (needs root, to become one)
       --daemon            the daemon's processor time and requests in each workload as well
       --rtt N             far: the round trip, in milliseconds (default 20)
       --rate RATE         far: the rate of the line, as 100mbit (default: as fast as the machine is)
       --peers NAME,NAME   far: what is measured as well: rclone (the default) or none
       --out DIR           far: where far.json and far.svg go (default bench-results)
       --profile DIR       CPU profiles of daemons, gateways, commands and the benchmark, for Chrome's developer tools
`;

export class UsageError extends Error {}

/** Undefined: help was asked for and is printed. Throws a UsageError when the arguments are not understood or name no workload of `known`. */
export function readOptions(args: readonly string[], known: readonly string[]): BenchOptions | undefined {
  const { help, ...values } = parse(args);
  if (help) {
    const names = known.length === 0 ? "" : `workloads: ${known.join(", ")}\n`;
    process.stdout.write(`bench: ${basename(process.argv[1] ?? "", ".ts")}\n${names}${HELP}`);
    return undefined;
  }
  const { only: lists, rounds, "fuse-native": library, "no-passthrough": noPassthrough, ...rest } = values;
  const { "as-user": asUser, json, control, beside, daemon, profile, rtt, rate, peers, out } = rest;
  const only = lists.flatMap((names) => names.split(","));
  const stranger = only.find((name) => !known.includes(name));
  if (stranger !== undefined) {
    throw new UsageError(`--only: expected names out of ${known.join(", ")}, got "${stranger}"`);
  }
  if (rounds !== undefined && !/^[1-9]\d{0,3}$/.test(rounds)) {
    throw new UsageError(`--rounds: expected a number from 1 to 9999, got "${rounds}"`);
  }
  const count = rounds === undefined ? undefined : Number(rounds);
  if (rtt !== undefined && !/^\d{1,4}$/.test(rtt)) {
    throw new UsageError(`--rtt: expected milliseconds from 0 to 9999, got "${rtt}"`);
  }
  const far = { rtt: rtt === undefined ? undefined : Number(rtt), rate, peers: peers?.split(","), out };
  return { json, only, rounds: count, control, library, beside, noPassthrough, asUser, daemon, profile, ...far };
}

/** Sets the process's exit code: 2 when the command line was not understood, 1 when the benchmark failed. */
export function tellFailure(error: unknown): void {
  process.exitCode = error instanceof UsageError ? 2 : 1;
  const text =
    error instanceof UsageError ? `${error.message}; --help tells more` : error instanceof Error ? error.stack : error;
  process.stderr.write(`bench: ${text}\n`);
}

/** What `read` throws, as a UsageError. */
export function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function parse(args: readonly string[]) {
  return asUsage(
    () =>
      parseArgs({
        args: [...args],
        options: {
          json: { type: "boolean", default: false },
          only: { type: "string", multiple: true, default: [] },
          rounds: { type: "string" },
          control: { type: "boolean", default: false },
          "fuse-native": { type: "boolean", default: false },
          beside: { type: "string" },
          "no-passthrough": { type: "boolean", default: false },
          "as-user": { type: "boolean", default: false },
          daemon: { type: "boolean", default: false },
          profile: { type: "string" },
          rtt: { type: "string" },
          rate: { type: "string" },
          peers: { type: "string" },
          out: { type: "string", default: "bench-results" },
          help: { type: "boolean", default: false },
        },
      }).values,
  );
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
