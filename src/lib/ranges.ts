/**
 * Immutable sets of byte ranges, for example the missing ranges of a file. A set is a flat list of bounds [start, end,
 * start, end, …], strictly ascending. So it is sorted, disjoint and merged, and equal sets have equal lists. Look-ups
 * are O(log n), changes O(n). Functions with bounds throw a RangeError unless they are whole numbers, 0 <= start <= end.
 */

/** The bytes from `start` up to but without `end`; whole numbers from 0. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

declare const BOUNDS: unique symbol;
/** Made only by the functions of this file. */
export type Ranges = readonly number[] & { readonly [BOUNDS]: true };

export const NO_RANGES: Ranges = made([]);

/** The set of the range [start, end). It is empty when start equals end. */
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

/** True if every byte of [start, end) is in the set. True for an empty range. */
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
  // The bytes from an end up to the next start are missing. `position` is the first of them.
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
    // Two parts never touch, because one of the sets has a gap between them. So the list stays merged.
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

/** Reads the text of `formatRanges`. Undefined: it is another text. */
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

/** The set with all of [start, end) (`present`), or without any of it. Ranges that touch it merge with it. */
function replaced(ranges: Ranges, start: number, end: number, present: boolean): Ranges {
  // Bounds at `start` and at `end` themselves go too: the range replaces them or merges with them.
  const from = boundsBelow(ranges, start);
  const to = boundsUpTo(ranges, end);
  const bounds = ranges.slice(0, from);
  // After an even number of bounds a position is outside of the set. A new bound is needed where that changes.
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

/** The bound, or Infinity behind the last one: nothing follows. */
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
