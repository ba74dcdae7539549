/**
 * Pages of lists (gateway-spec §4): pageNo from 1, pageSize, and orderBy, a field of the item; "-" before it is the
 * exact reverse. Ties are in the order of ids. `after` is an opaque word that goes on after the page before, in the
 * list as it was at the first page.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { invalid } from "./problems.ts";
import type { Row, SortedLists } from "./sorted-lists.ts";

export interface PageQuery {
  readonly pageNo: number;
  readonly pageSize: number;
  readonly orderBy?: string | undefined;
  readonly after?: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly totalCount: number;
  readonly pageNo: number;
  readonly pageSize: number;
  readonly asOf: number;
  /** Value of after= for the next page; null on the last. */
  readonly next: string | null;
}

interface Order<F extends string = string> {
  readonly field: F;
  readonly descending: boolean;
}

export function parseOrder<F extends string>(orderBy: string | undefined, fields: readonly F[], fallback: F): Order<F> {
  const text = orderBy ?? fallback;
  const descending = text.startsWith("-");
  const field = fields.find((known) => known === (descending ? text.slice(1) : text));
  if (field === undefined) {
    throw invalid(
      "orderBy",
      `orderBy: expected one of ${fields.join(", ")} ("-" before it for descending), got ${text}`,
    );
  }
  return { field, descending };
}

export const badCursor = () =>
  invalid("after", 'after: expected the "next" of a page of this list, or nothing for its first page');

/** Encodes an opaque `next`; `decodeCursor` decodes it. */
export function encodeCursor(value: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

export function decodeCursor<T extends z.ZodType>(text: string, schema: T): z.output<T> {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    value = undefined;
  }
  const result = schema.safeParse(value);
  if (!result.success) throw badCursor();
  return result.data;
}

/** Returns a page of a sorted list. Descending is the exact reverse. */
export function sliceOf(rows: Float64Array, descending: boolean, offset: number, limit: number): number[] {
  if (!descending) return [...rows.subarray(offset, offset + limit)];
  const end = Math.max(0, rows.length - offset);
  return [...rows.subarray(Math.max(0, end - limit), end)].reverse();
}

/** A list that is sorted as a whole, once for each order and each position at which it changed. */
interface SortableList<F extends string, T> {
  /** Values that distinguish the list from all others. */
  readonly key: readonly unknown[];
  readonly fields: readonly F[];
  readonly fallback: F;
  /** The position of the list, when the request is for its first page. */
  readonly asOf: number;
  /** Returns the last position, up to `asOf`, at which the list changed. */
  changedAt(asOf: number): number | string;
  /** Returns all rows of a position, with their values of the field. */
  rows(field: F, asOf: number): Iterable<readonly Row[]>;
  show(rows: readonly number[], asOf: number): readonly T[];
}

const count = z.number().int().min(0);
/** [position, pageNo, totalCount, items before, mark of the list]. */
const listCursor = z.tuple([count, z.number().int().min(1), count, count, z.string()]);

/** Returns a page by number, or the next one of the list at the same position by `after=`. */
export async function pageOfList<F extends string, T>(
  lists: SortedLists,
  query: PageQuery,
  list: SortableList<F, T>,
): Promise<Page<T>> {
  const { field, descending } = parseOrder(query.orderBy, list.fields, list.fallback);
  const mark = listMark([...list.key, field, descending]);
  const from = query.after === undefined || query.after === "" ? undefined : decodeCursor(query.after, listCursor);
  if (from !== undefined && (from[0] > list.asOf || from[4] !== mark)) throw badCursor();
  const asOf = from?.[0] ?? list.asOf;
  const pageNo = from?.[1] ?? (query.after === undefined ? query.pageNo : 1);
  const offset = from?.[3] ?? (pageNo - 1) * query.pageSize;
  const key = JSON.stringify([...list.key, field, list.changedAt(asOf)]);
  const rows = await lists.get(key, () => list.rows(field, asOf));
  const items = list.show(sliceOf(rows, descending, offset, query.pageSize), asOf);
  const end = offset + items.length;
  return {
    items,
    totalCount: rows.length,
    pageNo,
    pageSize: query.pageSize,
    asOf,
    next: items.length > 0 && end < rows.length ? encodeCursor([asOf, pageNo + 1, rows.length, end, mark]) : null,
  };
}

/** A short mark for cursors. It shows whether a cursor belongs to the requested list. */
export function listMark(key: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(key)).digest("base64url").slice(0, 12);
}

/**
 * Returns a page of a list that is short enough to be sorted for each page. `after=` goes on by place, in the
 * list as it is now, except for items that are requested as of the position of the first page.
 */
export function pageOfItems<F extends string, T>(
  query: PageQuery,
  list: {
    readonly items: readonly T[] | ((asOf: number) => readonly T[]);
    readonly fields: readonly F[];
    readonly fallback: F;
    readonly by: (field: F) => (item: T) => string | number;
    readonly asOf: number;
  },
): Page<T> {
  const { field, descending } = parseOrder(query.orderBy, list.fields, list.fallback);
  const value = list.by(field);
  const order = (a: T, b: T) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
  const from =
    query.after === undefined || query.after === "" ? undefined : decodeCursor(query.after, z.tuple([count, count]));
  const asOf = from?.[1] ?? list.asOf;
  if (asOf > list.asOf) throw badCursor();
  const sorted = [...(typeof list.items === "function" ? list.items(asOf) : list.items)].sort(order);
  if (descending) sorted.reverse();
  const pageNo = from?.[0] ?? (query.after === undefined ? query.pageNo : 1);
  const end = pageNo * query.pageSize;
  return {
    items: sorted.slice(end - query.pageSize, end),
    totalCount: sorted.length,
    pageNo,
    pageSize: query.pageSize,
    asOf,
    next: end < sorted.length ? encodeCursor([pageNo + 1, asOf]) : null,
  };
}
