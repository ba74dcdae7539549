/**
 * Pages of lists (gateway-spec §4): pageNo from 1, pageSize, orderBy a field of the item with "-"
 * for descending, ties by the list's own order. `after` is an opaque word that goes on from the
 * page before.
 */
import { z } from "zod";
import { invalid } from "./problems.ts";

export interface PageQuery {
  readonly pageNo: number;
  readonly pageSize: number;
  readonly orderBy?: string | undefined;
  readonly after?: string | undefined;
}

export interface Order<F extends string = string> {
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

/** An opaque `next`, and back. */
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

/** A page of a sorted list; descending is its exact reverse. */
export function sliceOf(rows: Float64Array, descending: boolean, offset: number, limit: number): number[] {
  if (!descending) return [...rows.subarray(offset, offset + limit)];
  const end = Math.max(0, rows.length - offset);
  return [...rows.subarray(Math.max(0, end - limit), end)].reverse();
}

const offsetCursor = z.tuple([z.number().int().min(0)]);

interface Slice<T> {
  readonly items: readonly T[];
  readonly totalCount: number;
  readonly next: string | null;
}

/** A page of a list that is short enough to be sorted in memory. Such lists only grow at their end. */
export function sortAndSlice<T extends object>(
  all: readonly T[],
  query: PageQuery,
  fields: readonly (string & keyof T)[],
  fallback: string,
): Slice<T> {
  const { field, descending } = parseOrder(query.orderBy, fields, fallback);
  const value = (item: T) => (item as Record<string, unknown>)[field];
  const sign = descending ? -1 : 1;
  const sorted = [...all].sort((a, b) => sign * compare(value(a), value(b)));
  const start =
    query.after === undefined || query.after === ""
      ? (query.pageNo - 1) * query.pageSize
      : (decodeCursor(query.after, offsetCursor)[0] ?? 0);
  const end = start + query.pageSize;
  return {
    items: sorted.slice(start, end),
    totalCount: sorted.length,
    next: end < sorted.length ? encodeCursor([end]) : null,
  };
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const left = String(a ?? "");
  const right = String(b ?? "");
  return left < right ? -1 : left > right ? 1 : 0;
}

export function pageOf<T>(slice: Slice<T>, query: PageQuery, asOf: number) {
  return {
    items: slice.items,
    totalCount: slice.totalCount,
    pageNo: query.pageNo,
    pageSize: query.pageSize,
    asOf,
    next: slice.next,
  };
}
