/**
 * Times as file systems count them: whole seconds since the epoch (rounded down, so negative before 1970) and
 * nanoseconds 0..999999999. In messages and rows a time is the text "seconds.nnnnnnnnn" (nine digits), which keeps
 * every bit. Equal times have equal texts.
 */
export interface Time {
  readonly seconds: number;
  readonly nanoseconds: number;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const TIME = /^(-?\d{1,15})\.(\d{9})$/;

export function formatTime(time: Time): string {
  return `${time.seconds}.${String(time.nanoseconds).padStart(9, "0")}`;
}

/** Undefined: the text is not "seconds.nnnnnnnnn". */
export function parseTime(text: string): Time | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  return { seconds: Number(match[1]), nanoseconds: Number(match[2]) };
}

export function timeFromMilliseconds(milliseconds: number): Time {
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds, nanoseconds: Math.floor((milliseconds - seconds * 1000) * 1e6) };
}

export function timeFromNanoseconds(nanoseconds: bigint): Time {
  const rest = ((nanoseconds % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  return { seconds: Number((nanoseconds - rest) / 1_000_000_000n), nanoseconds: Number(rest) };
}

export function toMilliseconds(time: Time): number {
  return time.seconds * 1000 + time.nanoseconds / 1e6;
}

/** The first and the last second that ext4 can store. */
const FIRST = -(2 ** 31);
const LAST = 2 ** 34 - 2 ** 31 - 1;

/** Limits a time to `FIRST` and `LAST` as the kernel does: at either end the nanoseconds become 0. */
export function clampTime({ seconds, nanoseconds }: Time): Time {
  const clamped = Math.min(Math.max(seconds, FIRST), LAST);
  return { seconds: clamped, nanoseconds: clamped === FIRST || clamped === LAST ? 0 : nanoseconds };
}

/** Negative: a is earlier than b. 0: they are equal. */
export function compareTimes(a: Time, b: Time): number {
  return a.seconds - b.seconds || a.nanoseconds - b.nanoseconds;
}

/** `iso`: a time in the form of RFC 3339. */
export function isoToTimeText(iso: string): string {
  return formatTime(timeFromMilliseconds(Date.parse(iso)));
}
