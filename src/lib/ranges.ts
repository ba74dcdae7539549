/**
 * Immutable sets of byte ranges, for instance the parts of a file that are on this disk. A set is a flat list of bounds
 * [start, end, start, end, …), strictly ascending. It is thus sorted, disjoint and merged, and equal sets have equal
 * lists. Look-ups are O(log n), changes O(n).
 */

/** Bytes start (included) to end (excluded); integers from 0. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

declare const BOUNDS: unique symbol;
/** Made only by the functions of this file. */
export type Ranges = readonly number[] & { readonly [BOUNDS]: true };

export const NO_RANGES: Ranges = made([]);

/** A set of one range; empty when start equals end. */
export function rangeOf(start: number, end: number): Ranges {
  check(start, end);
  return start === end ? NO_RANGES : made([start, end]);
}

export function addRange(ranges: Ranges, start: number, end: number): Ranges {
  check(start, end);
  if (start === end || containsRange(ranges, start, end)) return ranges;
  return replaced(ranges, start, end, true);
}

export function subtractRange(ranges: Ranges, start: number, end: number): Ranges {
  check(start, end);
  if (start === end || ranges.length === 0) return ranges;
  return replaced(ranges, start, end, false);
}

/** True if every byte of [start, end) is in the set; true of an empty range. */
export function containsRange(ranges: Ranges, start: number, end: number): boolean {
  check(start, end);
  if (start === end) return true;
  const next = boundsUpTo(ranges, start);
  return next % 2 === 1 && bound(ranges, next) >= end;
}

/** The parts of [start, end) that are not in the set, ascending. */
export function missingWithin(ranges: Ranges, start: number, end: number): Range[] {
  check(start, end);
  const missing: Range[] = [];
  let next = boundsUpTo(ranges, start);
  // The bytes between an end and the next start are missing; `position` is where they begin.
  let position = next % 2 === 1 ? bound(ranges, next++) : start;
  while (position < end) {
    const stop = Math.min(end, bound(ranges, next));
    if (position < stop) missing.push({ start: position, end: stop });
    position = bound(ranges, next + 1);
    next += 2;
  }
  return missing;
}

/** The parts of [start, end) that are in the set, ascending. */
export function partsWithin(ranges: Ranges, start: number, end: number): Range[] {
  check(start, end);
  const parts: Range[] = [];
  const next = boundsUpTo(ranges, start);
  for (let i = next - (next % 2); i < ranges.length && bound(ranges, i) < end; i += 2) {
    const part = { start: Math.max(start, bound(ranges, i)), end: Math.min(end, bound(ranges, i + 1)) };
    if (part.start < part.end) parts.push(part);
  }
  return parts;
}

/** True if any byte of [start, end) is in the set. */
export function touchesRange(ranges: Ranges, start: number, end: number): boolean {
  check(start, end);
  if (start === end) return false;
  const next = boundsUpTo(ranges, start);
  return next % 2 === 1 || bound(ranges, next) < end;
}

export function isSameRanges(a: Ranges, b: Ranges): boolean {
  return a.length === b.length && a.every((bound, index) => bound === b[index]);
}

/** The bytes that are in both sets. */
export function intersectRanges(a: Ranges, b: Ranges): Ranges {
  const both: number[] = [];
  for (const { start, end } of listRanges(a)) {
    // Two parts never touch: one of the sets has a gap between them.
    for (const part of partsWithin(b, start, end)) both.push(part.start, part.end);
  }
  return made(both);
}

/** The set without the bytes from `size` on. */
export function clipRanges(ranges: Ranges, size: number): Ranges {
  check(0, size);
  const last = ranges.at(-1);
  return last === undefined || last <= size ? ranges : subtractRange(ranges, size, last);
}

/** The number of bytes in the set. */
export function totalBytes(ranges: Ranges): number {
  let total = 0;
  for (const { start, end } of listRanges(ranges)) total += end - start;
  return total;
}

/** The ranges, ascending, with at least one byte between them. */
export function* listRanges(ranges: Ranges): Generator<Range> {
  for (let i = 0; i < ranges.length; i += 2) yield { start: bound(ranges, i), end: bound(ranges, i + 1) };
}

/** As JSON: "[start,end,start,end]". */
export function formatRanges(ranges: Ranges): string {
  return JSON.stringify(ranges);
}

/** Undefined when the text is not what `formatRanges` writes. */
export function parseRanges(text: string): Ranges | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value) || value.length % 2 !== 0) return undefined;
  let last = -1;
  for (const each of value as unknown[]) {
    if (typeof each !== "number" || !Number.isSafeInteger(each) || each <= last) return undefined;
    last = each;
  }
  return made(value as number[]);
}

/** The set with all of [start, end) in it, or none of it. Bounds that touch the range merge with it. */
function replaced(ranges: Ranges, start: number, end: number, present: boolean): Ranges {
  // A bound at `start` itself goes, because the range replaces it or merges with it; so does a bound at `end`.
  const from = boundsBelow(ranges, start);
  const to = boundsUpTo(ranges, end);
  const bounds = ranges.slice(0, from);
  // After an even number of bounds the position is outside the set, so that a new start is needed, and so on.
  if ((from % 2 === 0) === present) bounds.push(start);
  if ((to % 2 === 0) === present) bounds.push(end);
  for (let i = to; i < ranges.length; i++) bounds.push(bound(ranges, i));
  return made(bounds);
}

/** The number of bounds <= position. Odd: the byte at `position` is in the set. */
function boundsUpTo(ranges: Ranges, position: number): number {
  return boundsBelow(ranges, position + 1);
}

/** The number of bounds < position. */
function boundsBelow(ranges: Ranges, position: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bound(ranges, middle) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Behind the last bound there is nothing, up to the end of any file. */
function bound(ranges: Ranges, index: number): number {
  return ranges[index] ?? Number.POSITIVE_INFINITY;
}

function made(bounds: number[]): Ranges {
  return bounds as readonly number[] as Ranges;
}

function check(start: number, end: number): void {
  if (Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start <= end) return;
  throw new RangeError(`expected a range of integers with 0 <= start <= end, got [${start}, ${end})`);
}
