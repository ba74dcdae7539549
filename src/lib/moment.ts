/**
 * A moment in the forms that people write: ISO 8601, a local date and time, or a duration before now. It knows this
 * machine's time zone, but no clock.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "./time.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?$/i;
const WITH_ZONE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/i;

export const MOMENT_EXPECTED = 'a moment such as 10m, 2h or 3d (ago), yesterday, 2026-11-27 or "2026-11-27 10:22"';

/** Milliseconds since 1970. Throws an Error with the expected forms. */
export function parseMoment(given: string, nowMs: number): number {
  const text = given.trim();
  const parsed = ago(text, nowMs) ?? named(text.toLowerCase(), nowMs) ?? withZone(text) ?? local(text);
  if (parsed === undefined || Number.isNaN(parsed) || parsed < 0) throw new Error(MOMENT_EXPECTED);
  return parsed;
}

function ago(text: string, nowMs: number): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,9})([smhdw])(?: ago)?$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  return unitMs === undefined ? undefined : nowMs - Number(amount) * unitMs;
}

/** "yesterday" is this time on the day before. A change of summer time may make that 23 or 25 hours ago. */
function named(text: string, nowMs: number): number | undefined {
  const at = new Date(nowMs);
  if (text === "now") return nowMs;
  if (text === "today") return at.setHours(0, 0, 0, 0);
  return text === "yesterday" ? at.setDate(at.getDate() - 1) : undefined;
}

function withZone(text: string): number | undefined {
  return WITH_ZONE.test(text) ? Date.parse(text.replace(/([+-]\d\d)(\d\d)$/, "$1:$2")) : undefined;
}

/** A date alone means its first moment. */
function local(text: string): number | undefined {
  const match = DATE.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const at = new Date(year, month - 1, day, hour, minute, second, Math.floor(Number(`0.${match[7] ?? 0}`) * 1000));
  // A day or an hour that does not exist would turn into another one.
  const isIt = at.getMonth() === month - 1 && at.getDate() === day && hour < 24 && minute < 60 && second < 60;
  return isIt ? at.getTime() : undefined;
}
