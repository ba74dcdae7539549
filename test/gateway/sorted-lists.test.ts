/** Lists put in order: as a plain sort has it, with little memory, and not more at a time than can be. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { ProblemError } from "../../src/gateway/problems.ts";
import {
  compareRows,
  createSortedLists,
  type Row,
  type SortValue,
  WAITING_MAX,
} from "../../src/gateway/sorted-lists.ts";
import { seededRandom } from "../support/virtual-clock.ts";

/** More than are sorted at once. */
const LONG = 4097;
const idOf = (index: number) => String(index).padStart(6, "0");

function* batchesOf(rows: readonly Row[], size = 1000): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += size) yield rows.slice(start, start + size);
}

const value: fc.Arbitrary<SortValue> = fc.oneof(
  fc.constant(null),
  fc.constantFrom(0, -0, 1, -1, 0.5, -2.5, 255, 256, 65_536, -65_536, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", "a", "aa", "a\0", "\uffff", "\u{1f600}", "ä", "z"),
);

test("every order is that of a plain sort, whatever the values are", async () => {
  const random = seededRandom(1);
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 40 }), async (values) => {
      const rows = Array.from({ length: 3 * LONG }, (_, index): Row => {
        return { row: index, value: values[Math.floor(random() * values.length)] ?? null, id: idOf(index) };
      });
      const shuffled = rows.map((row) => ({ row, key: random() })).sort((a, b) => a.key - b.key);
      const sorted = await createSortedLists().get("k", () => batchesOf(shuffled.map(({ row }) => row)));
      expect([...sorted]).toEqual(rows.sort(compareRows).map(({ row }) => row));
    }),
    { seed: 1, numRuns: 15 },
  );
});

test("a row that comes twice is in it once", async () => {
  for (const length of [10, 2 * LONG]) {
    const rows = Array.from({ length }, (_, index): Row => ({ row: index, value: index % 7, id: idOf(index) }));
    const sorted = await createSortedLists().get("k", () => batchesOf([...rows, ...rows.slice(0, 9)]));
    expect([...sorted]).toEqual(rows.sort(compareRows).map(({ row }) => row));
  }
});

const long = Array.from({ length: LONG }, (_, index): Row => ({ row: index, value: index, id: idOf(index) }));

test("what is too long, or too much to compare, is refused by name", async () => {
  for (const limits of [
    { rows: 3 * LONG, keyBytes: 2 ** 30 },
    { rows: 1e9, keyBytes: 4 * LONG * 15 },
  ]) {
    const lists = createSortedLists(limits);
    const get = (key: string, rows: readonly Row[]) => lists.get(key, () => batchesOf(rows));
    const many = Array.from({ length: 4 }, (_, part) =>
      long.map((row) => ({ ...row, id: `${part}${row.id}${row.id}` })),
    );
    await expect(get("many", many.flat())).rejects.toMatchObject({ status: 400, details: { field: "orderBy" } });
    expect((await get("few", long)).length).toBe(LONG);
  }
});

test("only so many wait for their turn; short ones and those that are known never do", async () => {
  const lists = createSortedLists();
  const known = await lists.get("known", () => batchesOf(long));
  const waiting = Array.from({ length: WAITING_MAX + 1 }, (_, index) => lists.get(`${index}`, () => batchesOf(long)));
  let refusal: unknown;
  try {
    await lists.get("one more", () => batchesOf(long));
  } catch (error) {
    refusal = error;
  }
  if (!(refusal instanceof ProblemError)) throw new Error("It was not refused.");
  expect([refusal.status, Number(refusal.details.headers?.["retry-after"]) > 0]).toEqual([503, true]);
  expect(await lists.get("known", () => batchesOf([]))).toBe(known);
  expect([...(await lists.get("short", () => batchesOf(long.slice(0, 2))))]).toEqual([0, 1]);
  // The same one again is no other.
  expect(await lists.get("0", () => batchesOf([]))).toEqual(known);
  for (const list of waiting) expect((await list).length).toBe(LONG);
  expect((await lists.get("one more", () => batchesOf(long))).length).toBe(LONG);
});
