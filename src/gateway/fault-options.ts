/**
 * How a gateway misbehaves on purpose, and how little its workspaces may hold, as one schema: the
 * flags of `wsfs gateway`, the control endpoint, tests and the simulation all say it in these words.
 * Carried out by faults.ts (requests), lag.ts and births.ts (what is shown late), tokens.ts (their
 * life), quota.ts and core.ts (the skewed clock).
 */
import { z } from "zod";
import { OPERATIONS, type OperationName } from "../contract/operations.ts";

/** At most one of them befalls a request. */
export const FAULTS = [
  /** 500, nothing was done. */
  "error",
  /** 503, nothing was done. */
  "unavailable",
  /** 429 with Retry-After, nothing was done. */
  "throttled",
  /** The connection breaks, nothing was done. */
  "resetBefore",
  /** The connection breaks once all of the request is received; then it is carried out. */
  "resetDuring",
  /** It is carried out, then the connection breaks without an answer. */
  "resetAfter",
  /** The connection breaks somewhere within an upload's content, nothing was done. Of other requests: as resetBefore. */
  "truncatedUpload",
  /** It is carried out; the connection breaks somewhere within the answer's body. Of answers without one: as resetAfter. */
  "truncatedAnswer",
  /** Range is passed over: the whole content with 200. */
  "ignoredRange",
] as const;
export type Fault = (typeof FAULTS)[number];

/** From all of it behind to all of it ahead is a day: idempotency keys live that much longer than promised. */
const SKEW_MS_MAX = 12 * 3600 * 1000;

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
export type FaultRates = z.output<typeof rates>;

/** Rates of one operation go before those of "all", each by itself. */
export const FAULT_TARGETS = ["all", ...(Object.keys(OPERATIONS) as OperationName[])] as const;
export type FaultTarget = (typeof FAULT_TARGETS)[number];

/** Where there is a jitter, each time is drawn anew from between the value and the value plus its jitter. */
export const faultOptions = z.strictObject({
  /** How long each answer takes, half of it before the effect and half after. */
  latencyMs: milliseconds.default(0),
  latencyJitterMs: milliseconds.default(0),
  /** How long after a change reads by path and listings show it. */
  pathLagMs: milliseconds.default(0),
  pathLagJitterMs: milliseconds.default(0),
  /** How long after a change the journal shows it. */
  journalLagMs: milliseconds.default(0),
  journalLagJitterMs: milliseconds.default(0),
  /** How long after its creation GET by its id answers 404. */
  idLagMs: milliseconds.default(0),
  idLagJitterMs: milliseconds.default(0),
  /** Share of requests that fail: a third each with 503, with a reset before and with a reset after the effect. */
  failRate: rate.default(0),
  /** Shares of requests that meet a fault, by operation. */
  faults: z.partialRecord(z.enum(FAULT_TARGETS), rates).default({}),
  /** What a 429 says. */
  retryAfterSeconds: z.number().int().min(0).max(86_400).default(1),
  /** How fast contents come in and answers go out; 0: as fast as can be. */
  uploadBytesPerSecond: bytesPerSecond.default(0),
  downloadBytesPerSecond: bytesPerSecond.default(0),
  /** How long after its issue a token is good at most, whatever it says itself; 0: as it says. */
  tokenSeconds: z.number().int().min(0).max(1e9).default(0),
  /** How far the gateway's clock is ahead of the machine's; behind it when negative. */
  clockSkewMs: z.number().int().min(-SKEW_MS_MAX).max(SKEW_MS_MAX).default(0),
  /** How many bytes a workspace may hold, by its name; "all": each that is not named. Without: as many as the disk takes. */
  quota: z.record(z.string(), bytes).default({}),
});
export type FaultOptions = z.output<typeof faultOptions>;

/** What is wrong with rates together, where something is: those a request meets are shares of one whole. */
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

/** Some of them, to be changed; the others stay. Each value replaces the one before as a whole. */
export const faultChanges = z.strictObject(
  Object.fromEntries(
    Object.entries(faultOptions.shape).map(([name, schema]) => [name, schema.unwrap().optional()]),
  ) as { [N in keyof typeof faultOptions.shape]: z.ZodOptional<ReturnType<(typeof faultOptions.shape)[N]["unwrap"]>> },
);
