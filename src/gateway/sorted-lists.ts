/**
 * Lists in orders that no index has. The content of a list as of a position never changes, so it is sorted once, and
 * the numbers of its rows are kept, as many as memory allows. A page is a slice of them. Lists are built and sorted in
 * pieces, so that other requests are answered in between; only one is built at a time, and only a limited number waits.
 */
import { LRUCache } from "lru-cache";
import { invalid, ProblemError } from "./problems.ts";

/** Memory of all lists kept. */
const KEPT_BYTES = 128 * 1024 * 1024;
/** The longest list, and the memory of its sort keys. */
const ROWS_MAX = 4_000_000;
const KEY_BYTES_MAX = 512 * 1024 * 1024;
/** Rows sorted, or merged, without a pause. */
const SORT_ROWS = 4096;
/** Batches read without a pause, for a list that leaves out most of the rows it reads. */
const TAKEN_BATCHES = 8;
const MERGE_ROWS = 16_384;
/** The largest number of lists that wait for their turn. */
export const WAITING_MAX = 16;
const RETRY_AFTER_SECONDS = 2;

export type SortValue = string | number | null;

export interface Row {
  /** The number that stands for it in the list. */
  readonly row: number;
  readonly value: SortValue;
  /** Ties are in the order of ids. */
  readonly id: string;
}

/**
 * Yields the batches that `next` reads, each after the last key of the batch before. The last batch is shorter than
 * `size`.
 */
export function* inBatches<R>(
  size: number,
  start: number,
  next: (after: number) => readonly R[],
  keyOf: (row: R) => number,
): Generator<readonly R[]> {
  for (let after = start, more = true; more; ) {
    const batch = next(after);
    const last = batch.at(-1);
    if (last !== undefined) after = keyOf(last);
    more = batch.length === size;
    yield batch;
  }
}

export interface SortedLists {
  /**
   * Returns the list of this key: a kept one, or one built from batches of rows. A row that comes twice is in the list
   * once.
   */
  get(key: string, batches: () => Iterable<readonly Row[]>): Promise<Float64Array>;
  /** Changes were rolled back, and other changes will take their positions. */
  forget(): void;
}

interface SortLimits {
  readonly rows: number;
  readonly keyBytes: number;
}

export function createSortedLists(limits: SortLimits = { rows: ROWS_MAX, keyBytes: KEY_BYTES_MAX }): SortedLists {
  const kept = new LRUCache<string, Float64Array>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (rows, key) => rows.byteLength + key.length + 64,
  });
  const underWay = new Map<string, Promise<Float64Array>>();
  // One at a time: a list being sorted takes far more memory than a kept one.
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
      if (start.isAll) {
        // The list is short: it need not wait for a long one.
        const rows = rowsOf(start.rows.sort(compareRows));
        kept.set(key, rows);
        return Promise.resolve(rows);
      }
      if (underWay.size > WAITING_MAX) {
        throw new ProblemError(503, "Too many long lists are being sorted; try again.", {
          headers: { "retry-after": String(RETRY_AFTER_SECONDS) },
        });
      }
      const begunAt = age;
      const built: Promise<Float64Array> = last
        .then(async () => {
          const rows = await sortRows(start, iterator, limits);
          // After a rollback there is no commit left for which this read could wait.
          if (age !== begunAt) throw new Error("Changes were undone while the list was read.");
          kept.set(key, rows);
          return rows;
        })
        .finally(() => {
          if (underWay.get(key) === built) underWay.delete(key);
        });
      underWay.set(key, built);
      last = built.catch(() => {});
      return built;
    },
    forget() {
      age += 1;
      kept.clear();
      underWay.clear();
    },
  };
}

/** Lets other work run. The clock is not involved. */
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Returns the next rows, slightly more than are sorted at once if there are that many, from a limited number of
 * batches.
 */
function takeRows(batches: Iterator<readonly Row[]>): { readonly rows: Row[]; readonly isAll: boolean } {
  const rows: Row[] = [];
  for (let taken = 0; rows.length <= SORT_ROWS && taken < TAKEN_BATCHES; taken += 1) {
    const { done, value } = batches.next();
    if (done === true) return { rows, isAll: true };
    for (const row of value) rows.push(row);
  }
  return { rows, isAll: false };
}

async function sortRows(
  start: ReturnType<typeof takeRows>,
  batches: Iterator<readonly Row[]>,
  limits: SortLimits,
): Promise<Float64Array> {
  const runs: Run[] = [];
  let total = 0;
  let bytes = 0;
  for (let taken = start; ; taken = takeRows(batches)) {
    const { rows, isAll } = taken;
    if (rows.length > 0) {
      const run = runOf(rows.sort(compareRows));
      runs.push(run);
      total += rows.length;
      bytes += run.keys.length;
    }
    if (total > limits.rows || bytes > limits.keyBytes) {
      throw invalid("orderBy", `orderBy: more than ${limits.rows} items cannot be put in this order`);
    }
    if (isAll) break;
    await pause();
  }
  return mergeRuns(runs, total);
}

function rowsOf(sorted: readonly Row[]): Float64Array {
  const rows = sorted.filter(({ id }, index) => index === 0 || sorted[index - 1]?.id !== id);
  return Float64Array.from(rows, ({ row }) => row);
}

/**
 * Sorted rows as bytes outside the heap, at a tenth of the size of objects: a value and an id for each row. Both
 * compare as bytes in the same order as they do as values.
 */
interface Run {
  readonly rows: Float64Array;
  readonly keys: Buffer;
  /** For each row the end of its value and the end of its id, where the next row begins. */
  readonly ends: Uint32Array;
  /** The current row. */
  at: number;
}

const NULL: Buffer = Buffer.of(0);

/** Absent values first, then numbers, then texts. */
function keyOf(value: SortValue): Buffer {
  if (value === null) return NULL;
  if (typeof value === "string") return Buffer.from(`\u0002${value}`);
  const bytes = Buffer.alloc(9, 1);
  bytes.writeDoubleBE(value === 0 ? 0 : value, 1);
  // The sign bit of positive numbers is flipped, and every bit of negative ones: then bytes compare as numbers do.
  const isNegative = value < 0;
  for (let index = 1; index < 9; index += 1) {
    const byte = bytes[index] ?? 0;
    bytes[index] = isNegative ? byte ^ 0xff : index === 1 ? byte ^ 0x80 : byte;
  }
  return bytes;
}

function runOf(sorted: readonly Row[]): Run {
  const parts: Buffer[] = [];
  const ends = new Uint32Array(sorted.length * 2);
  let end = 0;
  for (const [index, { value, id }] of sorted.entries()) {
    for (const [which, part] of [keyOf(value), Buffer.from(id)].entries()) {
      parts.push(part);
      end += part.length;
      ends[2 * index + which] = end;
    }
  }
  return { rows: Float64Array.from(sorted, ({ row }) => row), keys: Buffer.concat(parts, end), ends, at: 0 };
}

/** Offsets of the current row of a run: begin of its key, end of its value, end of its id. */
const startOf = ({ ends, at }: Run) => (at === 0 ? 0 : (ends[2 * at - 1] ?? 0));
const middleOf = ({ ends, at }: Run) => ends[2 * at] ?? 0;
const endOf = ({ ends, at }: Run) => ends[2 * at + 1] ?? 0;

function compareRuns(a: Run, b: Run): number {
  const [aMiddle, bMiddle] = [middleOf(a), middleOf(b)];
  return (
    a.keys.compare(b.keys, startOf(b), bMiddle, startOf(a), aMiddle) ||
    a.keys.compare(b.keys, bMiddle, endOf(b), aMiddle, endOf(a))
  );
}

/** Merges all runs at once, by a heap of their current rows. */
async function mergeRuns(runs: Run[], total: number): Promise<Float64Array> {
  const heap = runs.sort(compareRuns);
  const rows = new Float64Array(total);
  let count = 0;
  let [last, lastStart, lastEnd] = [NULL, 0, 0];
  for (let first = heap[0], steps = 1; first !== undefined; first = heap[0], steps += 1) {
    const [start, end] = [middleOf(first), endOf(first)];
    if (first.keys.compare(last, lastStart, lastEnd, start, end) !== 0) {
      rows[count] = first.rows[first.at] ?? 0;
      count += 1;
    }
    [last, lastStart, lastEnd] = [first.keys, start, end];
    first.at += 1;
    if (first.at === first.rows.length) {
      const end = heap.pop();
      if (end !== undefined && end !== first) heap[0] = end;
    }
    sink(heap);
    if (steps % MERGE_ROWS === 0) await pause();
  }
  return count === total ? rows : rows.slice(0, count);
}

/** Moves the first run down to its place. */
function sink(heap: Run[]): void {
  const moved = heap[0];
  if (moved === undefined) return;
  let at = 0;
  for (;;) {
    const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
    const isRight = left !== undefined && right !== undefined && compareRuns(right, left) < 0;
    const least = isRight ? right : left;
    if (least === undefined || compareRuns(moved, least) <= 0) break;
    heap[at] = least;
    at = 2 * at + (isRight ? 2 : 1);
  }
  heap[at] = moved;
}

export function compareRows(a: Pick<Row, "value" | "id">, b: Pick<Row, "value" | "id">): number {
  return compareValues(a.value, b.value) || compareText(a.id, b.id);
}

/** Absent values first, then numbers, then texts, as in the indices of the store. */
function compareValues(a: SortValue, b: SortValue): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  if (typeof a === "number") return typeof b === "number" ? a - b : -1;
  return typeof b === "number" ? 1 : compareText(a, b);
}

/** Compares in the order of code points, which is that of UTF-8; JavaScript compares UTF-16. */
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
