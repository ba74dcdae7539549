import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addRange,
  clipRanges,
  containsRange,
  formatRanges,
  intersectRanges,
  listRanges,
  missingWithin,
  NO_RANGES,
  parseRanges,
  partsWithin,
  type Range,
  type Ranges,
  rangeOf,
  subtractRange,
  totalBytes,
  touchesRange,
} from "../../src/lib/ranges.ts";
import { SEED } from "../support/seed.ts";

const SIZE = 40;
const range = fc
  .tuple(fc.nat(SIZE), fc.nat(SIZE))
  .map(([a, b]): Range => ({ start: Math.min(a, b), end: Math.max(a, b) }));
const step = fc.record({ add: fc.boolean(), range });

/** The same set as one boolean per byte. */
function bitmapOf(steps: readonly { add: boolean; range: Range }[]): boolean[] {
  const bits = new Array<boolean>(SIZE).fill(false);
  for (const { add, range } of steps) bits.fill(add, range.start, range.end);
  return bits;
}

function rangesOf(steps: readonly { add: boolean; range: Range }[]): Ranges {
  return steps.reduce(
    (ranges, { add, range }) => (add ? addRange : subtractRange)(ranges, range.start, range.end),
    NO_RANGES,
  );
}

/** Stretches of `value` in the bits, within [start, end). */
function stretches(bits: readonly boolean[], value: boolean, start = 0, end = SIZE): Range[] {
  const found: Range[] = [];
  for (let i = start; i < end; i++) {
    if (bits[i] !== value) continue;
    const last = found.at(-1);
    if (last?.end === i) found[found.length - 1] = { start: last.start, end: i + 1 };
    else found.push({ start: i, end: i + 1 });
  }
  return found;
}

describe("ranges behave as a bitmap does", () => {
  const steps = fc.array(step, { maxLength: 12 });

  test("after any additions and subtractions: sorted, disjoint, merged", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        expect(Array.from(listRanges(rangesOf(steps)))).toEqual(stretches(bitmapOf(steps), true));
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  test("what is in both of two", () => {
    fc.assert(
      fc.property(steps, steps, (a, b) => {
        const [inA, inB] = [bitmapOf(a), bitmapOf(b)];
        const both = inA.map((bit, index) => bit && inB[index] === true);
        expect(Array.from(listRanges(intersectRanges(rangesOf(a), rangesOf(b))))).toEqual(stretches(both, true));
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  test("contains, missing, total, clip", () => {
    fc.assert(
      fc.property(steps, range, (steps, { start, end }) => {
        const ranges = rangesOf(steps);
        const bits = bitmapOf(steps);
        expect(containsRange(ranges, start, end)).toBe(bits.slice(start, end).every((bit) => bit));
        expect(missingWithin(ranges, start, end)).toEqual(stretches(bits, false, start, end));
        expect(totalBytes(ranges)).toBe(bits.filter((bit) => bit).length);
        expect(Array.from(listRanges(clipRanges(ranges, end)))).toEqual(stretches(bits, true, 0, end));
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  test("a change leaves the set it started from as it was", () => {
    fc.assert(
      fc.property(steps, step, (steps, last) => {
        const before = rangesOf(steps);
        const text = formatRanges(before);
        (last.add ? addRange : subtractRange)(before, last.range.start, last.range.end);
        expect(formatRanges(before)).toBe(text);
      }),
      { seed: SEED },
    );
  });

  test("text and back is the same set", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const ranges = rangesOf(steps);
        expect(parseRanges(formatRanges(ranges))).toEqual(ranges);
      }),
      { seed: SEED },
    );
  });
});

test("ranges that touch become one", () => {
  expect(formatRanges(addRange(addRange(NO_RANGES, 0, 5), 5, 9))).toBe("[0,9]");
});

test("large offsets keep every byte", () => {
  const end = Number.MAX_SAFE_INTEGER;
  const ranges = subtractRange(rangeOf(0, end), end - 2, end - 1);
  expect(missingWithin(ranges, 0, end)).toEqual([{ start: end - 2, end: end - 1 }]);
  expect(totalBytes(ranges)).toBe(end - 1);
});

test.each(["", "{}", "[1]", "[2,1]", "[1,1]", "[0,4,4,6]", "[-1,3]", "[0,1.5]", '["0",1]', "[0,1e300]", "[null,1]"])(
  "text that is no set is refused: %s",
  (text) => {
    expect(parseRanges(text)).toBeUndefined();
  },
);

test.each([
  [-1, 3],
  [3, 1],
  [0.5, 2],
  [0, Number.NaN],
  [0, 2 ** 60],
])("a range that is none is named: [%d, %d)", (start, end) => {
  expect(() => addRange(NO_RANGES, start, end)).toThrow(`got [${start}, ${end})`);
});

test("partsWithin and missingWithin divide any interval between them; touchesRange says whether there is a part", () => {
  const bounds = fc.uniqueArray(fc.nat(60), { maxLength: 12 }).map((list) => list.sort((a, b) => a - b));
  fc.assert(
    fc.property(bounds, fc.nat(60), fc.nat(60), (list, a, b) => {
      const ranges = parseRanges(JSON.stringify(list.slice(0, list.length - (list.length % 2)))) ?? NO_RANGES;
      const [start, end] = a < b ? [a, b] : [b, a];
      const parts = partsWithin(ranges, start, end);
      const all = [...parts, ...missingWithin(ranges, start, end)].sort((x, y) => x.start - y.start);
      let position = start;
      for (const part of all) {
        expect(part.start).toBe(position);
        position = part.end;
      }
      expect(position).toBe(end);
      for (const part of parts) expect(containsRange(ranges, part.start, part.end)).toBe(true);
      expect(touchesRange(ranges, start, end)).toBe(parts.length > 0);
    }),
    { seed: SEED },
  );
});
