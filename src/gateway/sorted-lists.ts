/**
 * Lists in orders no index has: what a list holds as of a position never changes, so it is sorted
 * once and its rows' numbers are kept, as many as memory allows; a page is a slice of them. Built
 * and sorted in pieces, so that other requests are answered in between.
 */
import { LRUCache } from "lru-cache";
import { invalid } from "./problems.ts";

/** Memory of all lists kept. */
const KEPT_BYTES = 128 * 1024 * 1024;
/** Longest list; its rows take about 300 bytes each while it is sorted. */
const ROWS_MAX = 4_000_000;
/** Rows sorted, and merged, without a pause. */
const SORT_ROWS = 4096;
const MERGE_ROWS = 32_768;

export type SortValue = string | number | null;

export interface Row {
  /** What stands for it in the list. */
  readonly row: number;
  readonly value: SortValue;
  /** Ties are in the order of ids. */
  readonly id: string;
}

export interface SortedLists {
  /** The list of this key: kept, or built from batches of rows. A row that comes twice is in it once. */
  get(key: string, batches: () => Iterable<readonly Row[]>): Promise<Float64Array>;
  /** Changes were undone, and other ones will have their positions. */
  forget(): void;
}

export function createSortedLists(): SortedLists {
  const kept = new LRUCache<string, Float64Array>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (rows, key) => rows.byteLength + key.length + 64,
  });
  const underWay = new Map<string, Promise<Float64Array>>();
  // One at a time: what is being sorted takes far more memory than what is kept.
  let last: Promise<unknown> = Promise.resolve();
  let age = 0;

  return {
    get(key, batches) {
      const known = kept.get(key);
      if (known !== undefined) return Promise.resolve(known);
      const begun = underWay.get(key);
      if (begun !== undefined) return begun;
      const iterator = batches()[Symbol.iterator]();
      const start = takeRows(iterator);
      if (start.length <= SORT_ROWS) {
        // It is short: no reason to wait for a long one.
        const rows = rowNumbers(start.sort(compareRows));
        kept.set(key, rows);
        return Promise.resolve(rows);
      }
      const begunAt = age;
      const built = last.then(async () => {
        const rows = await sortRows(start, iterator);
        // By then nothing is left that would wait for the commit of what was read.
        if (age !== begunAt) throw new Error("Changes were undone while the list was read.");
        kept.set(key, rows);
        return rows;
      });
      underWay.set(key, built);
      last = built.catch(() => {});
      void last.then(() => {
        if (underWay.get(key) === built) underWay.delete(key);
      });
      return built;
    },
    forget() {
      age += 1;
      kept.clear();
      underWay.clear();
    },
  };
}

/** Lets others run; the clock plays no part in it. */
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The next rows, a few more than are sorted at once when there are that many. */
function takeRows(batches: Iterator<readonly Row[]>): Row[] {
  const rows: Row[] = [];
  while (rows.length <= SORT_ROWS) {
    const { done, value } = batches.next();
    if (done === true) break;
    for (const row of value) rows.push(row);
  }
  return rows;
}

async function sortRows(start: Row[], batches: Iterator<readonly Row[]>): Promise<Float64Array> {
  let runs: Row[][] = [];
  let total = 0;
  for (let run = start; run.length > 0; run = takeRows(batches)) {
    total += run.length;
    if (total > ROWS_MAX) {
      throw invalid("orderBy", `orderBy: more than ${ROWS_MAX} items cannot be put in this order`);
    }
    runs.push(run.sort(compareRows));
    await pause();
  }
  while (runs.length > 1) {
    const merged: Row[][] = [];
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(await merge(runs[index] ?? [], runs[index + 1] ?? []));
    }
    runs = merged;
  }
  return rowNumbers(runs[0] ?? []);
}

function rowNumbers(sorted: readonly Row[]): Float64Array {
  const rows = new Float64Array(sorted.length);
  let count = 0;
  for (const [index, { row, id }] of sorted.entries()) {
    if (index > 0 && sorted[index - 1]?.id === id) continue;
    rows[count] = row;
    count += 1;
  }
  return count === rows.length ? rows : rows.slice(0, count);
}

async function merge(left: readonly Row[], right: readonly Row[]): Promise<Row[]> {
  const merged: Row[] = [];
  let l = 0;
  let r = 0;
  while (l < left.length || r < right.length) {
    const a = left[l];
    const b = right[r];
    if (b === undefined || (a !== undefined && compareRows(a, b) <= 0)) {
      if (a !== undefined) merged.push(a);
      l += 1;
    } else {
      merged.push(b);
      r += 1;
    }
    if (merged.length % MERGE_ROWS === 0) await pause();
  }
  return merged;
}

export function compareRows(a: Pick<Row, "value" | "id">, b: Pick<Row, "value" | "id">): number {
  return compareValues(a.value, b.value) || compareText(a.id, b.id);
}

/** Absent ones first, then numbers, then texts: as the store's indices do. */
function compareValues(a: SortValue, b: SortValue): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  if (typeof a === "number") return typeof b === "number" ? a - b : -1;
  return typeof b === "number" ? 1 : compareText(a, b);
}

/** In the order of code points, which is that of their UTF-8; JavaScript compares UTF-16. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const x = a.charCodeAt(index);
    const y = b.charCodeAt(index);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points beyond all others of 16 bits. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
