/**
 * Retention policies: which past contents are kept, and the words of a policy. A policy of versions is a list of steps
 * such as "all for 1d, hourly for 7d, monthly for ever". Each step keeps the contents that files had at its moments: at
 * every moment ("all"), or at each full hour, midnight, Monday, first of a month or of a year, in UTC. A content stays
 * when any step keeps it.
 *
 * The moments of a coarse step do not depend on the other steps. So no earlier prune removes a content that the step
 * will keep in a year.
 */
import { z } from "zod";
import { DAY_MS, HOUR_MS } from "../../lib/time.ts";

/** 5 January 1970 was the first Monday. */
const MONDAY_MS = 4 * DAY_MS;

const UNITS: Readonly<Record<string, number>> = { h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS, y: 365 * DAY_MS };
const AGE_MAX = 1_000_000;
const AGE = /^(\d{1,7})([hdwy])$/;
const STEP = /^(\w+) for (\w+)$/;
const EVER = "ever";

/** The latest moment of each step that is at or before a time. */
const LATEST = {
  all: (time: number) => time,
  hourly: (time: number) => time - modulo(time, HOUR_MS),
  daily: (time: number) => time - modulo(time, DAY_MS),
  weekly: (time: number) => time - modulo(time - MONDAY_MS, 7 * DAY_MS),
  monthly: (time: number) => Date.UTC(new Date(time).getUTCFullYear(), new Date(time).getUTCMonth()),
  yearly: (time: number) => Date.UTC(new Date(time).getUTCFullYear(), 0),
} as const;

const modulo = (value: number, by: number) => ((value % by) + by) % by;

type Every = keyof typeof LATEST;

interface Step {
  readonly every: Every;
  /** The maximum age, in milliseconds; infinite: for ever. */
  readonly age: number;
}

export interface Policy {
  /** No steps: only the heads are kept. */
  readonly steps: readonly Step[];
  /** The time for which a deleted node can be restored, in milliseconds. */
  readonly deletedAge: number;
}

/** A policy in words, as it is set, stored and shown. */
export const policyWords = z.strictObject({ versions: z.string(), deleted: z.string() });
export type PolicyWords = z.infer<typeof policyWords>;

export const KEEP_ALL: PolicyWords = { versions: "all for ever", deleted: EVER };

const STEPS_EXPECTED =
  'steps such as "all for 1d, hourly for 7d, daily for 30d, monthly for ever" ' +
  `(${Object.keys(LATEST).join(", ")}; for so many h, d, w or y, or for ever), "all", or "none"`;
const AGE_EXPECTED = 'an age such as 12h, 30d, 8w or 2y, or "ever"';

/** Returns the policy of the words. Throws an Error that says what was expected. */
export function readPolicy({ versions, deleted }: PolicyWords): Policy {
  return { steps: stepsOf(versions), deletedAge: ageOf(deleted.trim()) };
}

/** Returns the same policy in one spelling. Throws as `readPolicy` does. */
export function inOneSpelling(words: PolicyWords): PolicyWords {
  const { steps, deletedAge } = readPolicy(words);
  const versions = steps.map(({ every, age }) => `${every} for ${ageWords(age)}`).join(", ");
  return { versions: versions === "" ? "none" : versions, deleted: ageWords(deletedAge) };
}

function stepsOf(text: string): readonly Step[] {
  const words = text.trim().replace(/\s+/g, " ");
  if (words === "none") return [];
  if (words === "all") return [{ every: "all", age: Number.POSITIVE_INFINITY }];
  return words.split(/ ?, ?/).map((step) => {
    const [, every = "", age = ""] = STEP.exec(step) ?? [];
    if (!isEvery(every)) throw new Error(`versions: expected ${STEPS_EXPECTED}, got ${JSON.stringify(step)}`);
    return { every, age: ageOf(age, "versions") };
  });
}

const isEvery = (word: string): word is Every => Object.hasOwn(LATEST, word);

function ageOf(text: string, field: keyof PolicyWords = "deleted"): number {
  if (text === EVER) return Number.POSITIVE_INFINITY;
  const [, amount = "", unit = ""] = AGE.exec(text) ?? [];
  const count = Number(amount);
  if (amount === "" || count > AGE_MAX)
    throw new Error(`${field}: expected ${AGE_EXPECTED}, got ${JSON.stringify(text)}`);
  return count * (UNITS[unit] ?? Number.NaN);
}

function ageWords(age: number): string {
  if (age === Number.POSITIVE_INFINITY) return EVER;
  return age % DAY_MS === 0 ? `${age / DAY_MS}d` : `${age / HOUR_MS}h`;
}

/**
 * True if the policy keeps a content that a file had from `from` until just before `until`, in milliseconds since the
 * epoch.
 */
export function isKept({ steps }: Policy, from: number, until: number, now: number): boolean {
  return steps.some(({ every, age }) => {
    const latest = LATEST[every](until - 1);
    return latest >= now - age && (every === "all" || latest >= from);
  });
}

export const isToBePurged = ({ deletedAge }: Policy, deletedAt: number, now: number): boolean =>
  deletedAt < now - deletedAge;
