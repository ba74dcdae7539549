/**
 * The options for a gateway that misbehaves on purpose, and the quotas of its workspaces, as one schema. The flags of
 * `wsfs gateway`, the control endpoint, tests and the simulation all use it. The options are carried out by faults.ts
 * (requests), lag.ts and births.ts (delayed visibility), tokens.ts (lifetime of tokens), quota.ts and core.ts (the
 * skewed clock).
 */
import { z } from "zod";
import { OPERATIONS, type OperationName } from "../contract/operations.ts";
import { RETRY_AFTER_SECONDS_MAX, SKEW_MS_MAX } from "./fault-limits.ts";

/** A request meets at most one of them. */
export const FAULTS = [
  /** 500, nothing was done. */
  "error",
  /** 503, nothing was done. */
  "unavailable",
  /** 429 with Retry-After, nothing was done. */
  "throttled",
  /** The connection breaks, nothing was done. */
  "resetBefore",
  /** The connection breaks once the whole request is received; then the request is carried out. */
  "resetDuring",
  /** The request is carried out, then the connection breaks without an answer. */
  "resetAfter",
  /**
   * The connection breaks somewhere within the content of an upload, nothing was done. Other requests: as resetBefore.
   */
  "truncatedUpload",
  /**
   * The request is carried out; the connection breaks somewhere within the body of the answer. Answers without a body:
   * as resetAfter.
   */
  "truncatedAnswer",
  /** Range is ignored: the answer is the whole content with 200. */
  "ignoredRange",
] as const;
export type Fault = (typeof FAULTS)[number];

const milliseconds = z.number().min(0).max(1e9);
const rate = z.number().min(0).max(1);
const bytesPerSecond = z.number().min(0).max(1e12);
const bytes = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const rates = z.strictObject({
  error: rate.optional(),
  unavailable: rate.optional(),
  throttled: rate.optional(),
  resetBefore: rate.optional(),
  resetDuring: rate.optional(),
  resetAfter: rate.optional(),
  truncatedUpload: rate.optional(),
  truncatedAnswer: rate.optional(),
  ignoredRange: rate.optional(),
} satisfies Record<Fault, z.ZodType>);
type FaultRates = z.output<typeof rates>;

/** Rates of one operation come before those of "all", each rate separately. */
export const FAULT_TARGETS = ["all", ...(Object.keys(OPERATIONS) as OperationName[])] as const;
type FaultTarget = (typeof FAULT_TARGETS)[number];

/** With a jitter, each time is drawn between the value and the value plus its jitter. */
export const faultOptions = z.strictObject({
  /** Time each answer takes, half of it before the effect and half after. */
  latencyMs: milliseconds.default(0),
  latencyJitterMs: milliseconds.default(0),
  /** Time after a change until reads by path and listings show it. */
  pathLagMs: milliseconds.default(0),
  pathLagJitterMs: milliseconds.default(0),
  /** Time after a change until the journal shows it. */
  journalLagMs: milliseconds.default(0),
  journalLagJitterMs: milliseconds.default(0),
  /** Time after the creation of a node during which GET by its id answers 404. */
  idLagMs: milliseconds.default(0),
  idLagJitterMs: milliseconds.default(0),
  /** Share of requests that fail: a third each with 503, with a reset before the effect, and with a reset after it. */
  failRate: rate.default(0),
  /** Shares of requests that meet a fault, by operation. */
  faults: z.partialRecord(z.enum(FAULT_TARGETS), rates).default({}),
  /** Retry-After of a 429. */
  retryAfterSeconds: z.number().int().min(0).max(RETRY_AFTER_SECONDS_MAX).default(1),
  /** Speed at which contents come in and answers go out; 0: unlimited. */
  uploadBytesPerSecond: bytesPerSecond.default(0),
  downloadBytesPerSecond: bytesPerSecond.default(0),
  /** Maximum lifetime of a token after its issue, whatever the token says; 0: no such limit. */
  tokenSeconds: z.number().int().min(0).max(1e9).default(0),
  /** The lead of the gateway's clock over that of the machine. Negative: behind. */
  clockSkewMs: z.number().int().min(-SKEW_MS_MAX).max(SKEW_MS_MAX).default(0),
  /**
   * The largest number of bytes in a workspace, by its name; "all" is for each that is not named. Without it the disk
   * is the limit.
   */
  quota: z.record(z.string(), bytes).default({}),
});
export type FaultOptions = z.output<typeof faultOptions>;

/** Returns the fault of rates that add up to too much. The rates that one request can meet are shares of one whole. */
export function excessOfRates({
  failRate,
  faults,
}: Pick<FaultOptions, "failRate" | "faults">): { readonly target: FaultTarget; readonly problem: string } | undefined {
  for (const target of FAULT_TARGETS) {
    const shares: FaultRates = { ...faults.all, ...faults[target] };
    const sum = FAULTS.reduce((total, fault) => total + (shares[fault] ?? 0), failRate);
    if (sum <= 1 + 1e-9) continue;
    const whose = `rates of ${target}${failRate > 0 ? " and a fail rate" : ""}`;
    return { target, problem: `expected ${whose} that sum up to 1 at most, got ${Number(sum.toFixed(9))}` };
  }
  return undefined;
}

/** Changes to some options; the others stay. Each value replaces the one before as a whole. */
export const faultChanges = z.strictObject(
  Object.fromEntries(
    Object.entries(faultOptions.shape).map(([name, schema]) => [name, schema.unwrap().optional()]),
  ) as { [N in keyof typeof faultOptions.shape]: z.ZodOptional<ReturnType<(typeof faultOptions.shape)[N]["unwrap"]>> },
);
