/** The journal: the changes in the order of positions, delayed by its lag; and entries of callers. */
import { z } from "zod";
import type { JournalEntry } from "../contract/resources.ts";
import { changeOf } from "./access.ts";
import { beginChange, recordActivity } from "./changes.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { once } from "./idempotency.ts";
import {
  ENTRY_COLUMNS,
  ENTRY_FIELDS,
  type EntryFilter,
  type EntryRow,
  entriesAt,
  isFiltered,
  selectEntries,
  showEntry,
  withBefore,
} from "./journal-entries.ts";
import { lastChange, lastChangeOf, positionAt } from "./lag.ts";
import { badCursor, decodeCursor, encodeCursor, listMark, type Page, pageOfList, parseOrder } from "./paging.ts";
import { invalid, notFound } from "./problems.ts";
import { inBatches, type SortValue } from "./sorted-lists.ts";
import type { Store } from "./store.ts";
import { callWorkspace, visibleNode } from "./workspaces.ts";

export function appendJournal(context: Context, call: Call<"appendJournal">): GatewayAnswer {
  const { json } = call;
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  return context.store.transaction(() => {
    const row = visibleNode(context, call.caller, json.nodeId);
    const request = { workspace: row.workspace, key: json.idempotencyKey, same: ["appendJournal", row.id, json.kind] };
    return once(context, call.caller, request, () => {
      if (row.deleted === 1) throw notFound(`The node ${JSON.stringify(row.id)} is deleted.`);
      const change = beginChange(context, changeOf(call.caller, json.idempotencyKey));
      const position = recordActivity(context, change, row, json.kind);
      const entry = context.store
        .prepare<EntryRow>(
          `SELECT ${ENTRY_COLUMNS} FROM change c LEFT JOIN version v ON v.id = c.head WHERE c.position = ?`,
        )
        .get(position);
      if (entry === undefined) throw new Error(`Journal entry ${position} is gone within its own change.`);
      return { status: 201, value: showEntry(entry) };
    });
  });
}

const ENTRIES = `SELECT ${ENTRY_COLUMNS} FROM change c LEFT JOIN version v ON v.id = c.head
  WHERE c.workspace = ? AND c.entry IS NOT NULL AND c.position > ? AND c.position <= ?`;

/** Returns the entries of a workspace with `after` < position <= `end`, oldest first. */
export function entriesBetween(
  store: Store,
  workspace: string,
  after: number,
  end: number,
  limit: number,
): JournalEntry[] {
  return store
    .prepare<EntryRow>(`${ENTRIES} ORDER BY c.position LIMIT +?`)
    .all(workspace, after, end, limit)
    .map(showEntry);
}

const FIELDS = Object.keys(ENTRY_FIELDS) as (keyof typeof ENTRY_FIELDS)[];
const BATCH = 2000;
const LAST = Number.MAX_SAFE_INTEGER;

/** after= is a position. The `next` of pages in another order than that of positions begins with a position. */
const AFTER = /^(\d{1,16})(?:\.([\w-]+))?$/;

/**
 * Refuses a position that is not reached yet (400). The caller has it from another past: that of another gateway, or of
 * this one before its data were set back. The answer "nothing new" would hide every new entry until that position comes
 * again.
 */
export function checkReached(store: Store, field: string, position: number): void {
  const { position: newest } = lastChange(store);
  if (position <= newest) return;
  throw invalid(field, `${field}: expected a position that was reached, at most ${newest}, got ${position}`);
}

export async function readJournal(context: Context, call: Call<"readJournal">): Promise<GatewayAnswer> {
  const { store } = context;
  const { query } = call;
  const { nodeId, by, mount, before } = query;
  const workspace =
    nodeId === undefined
      ? callWorkspace(context, call.caller, query.workspace).id
      : visibleNode(context, call.caller, nodeId).workspace;
  const [, base = "", cursor] = AFTER.exec(query.after === "" ? "0" : query.after) ?? [];
  const given = Number(base);
  if (base === "" || given > LAST) {
    throw invalid("after", "after: expected a position, or the next of a page of this list");
  }
  checkReached(store, "after", given);
  // Times increase with positions.
  const after = query.since === undefined ? given : Math.max(given, positionAt(store, Date.parse(query.since) - 1));
  const filter = { workspace, nodeId, by, mount };
  const { field, descending } = parseOrder(query.orderBy, FIELDS, "position");
  const asOf = context.journalLag.shown();
  const range = { workspace, after, asOf };
  const answer = (page: Page<JournalEntry>) =>
    jsonAnswer(200, before ? { ...page, items: page.items.map((entry) => withBefore(store, entry)) } : page);
  if (field === "position" || field === "time") {
    if (!descending && cursor !== undefined) throw badCursor();
    const asked = { ...query, cursor };
    if (isFiltered(filter)) return answer(filteredPage(store, range, filter, descending, asked));
    return answer(descending ? pageFromTheEnd(store, range, asked) : pageByPosition(store, range, asked));
  }
  const page = await pageOfList(
    context.lists,
    { ...query, after: cursor },
    {
      key: ["journal", workspace, after, nodeId ?? null, by ?? null, mount ?? null],
      fields: FIELDS,
      fallback: "position",
      asOf,
      changedAt: (position) => lastChangeOf(store, workspace, position),
      *rows(by, end) {
        const next = store.prepare<{ row: number; value: SortValue }>(
          selectEntries(`c.position AS row, ${ENTRY_FIELDS[by]} AS value`, filter, "ASC"),
        );
        const from = (position: number) => next.all({ ...filter, after: position, end, limit: BATCH });
        for (const batch of inBatches(BATCH, after, from, ({ row }) => row)) {
          // Ties are in the order of positions.
          yield batch.map(({ row, value }) => ({ row, value, id: String(row).padStart(16, "0") }));
        }
      },
      show: (rows) => entriesAt(store, rows),
    },
  );
  return answer({ ...page, next: page.next === null ? null : `${after}.${page.next}` });
}

/** Entries of a workspace with `after` < position <= `asOf`. */
interface Range {
  readonly workspace: string;
  readonly after: number;
  readonly asOf: number;
}

const count = z.number().int().min(0);

/**
 * The number of entries of a filter that are counted and can be reached by number: filtered entries have no stored
 * numbers.
 */
const COUNTED_MAX = 10_000;
/** [position of the first page, pageNo, position of the last item, totalCount, mark of the list]. */
const filterCursor = z.tuple([count, z.number().int().min(1), count, count, z.string()]);

/** Returns a page of the entries that match a filter, from the index of the filter, in either order. */
function filteredPage(
  store: Store,
  { workspace, after, asOf: shown }: Range,
  filter: EntryFilter,
  descending: boolean,
  query: { readonly pageNo: number; readonly pageSize: number; readonly cursor: string | undefined },
): Page<JournalEntry> {
  const { pageSize } = query;
  const list = listMark(["journal", workspace, after, filter.nodeId, filter.by, filter.mount]);
  const from = query.cursor === undefined ? undefined : decodeCursor(query.cursor, filterCursor);
  const [asOf, pageNo, last, known, itsList] = from ?? [shown, query.pageNo, shown + 1, undefined, list];
  if (asOf > shown || itsList !== list) throw badCursor();
  const skip = from === undefined ? (pageNo - 1) * pageSize : 0;
  if (skip > COUNTED_MAX) {
    throw invalid(
      "pageNo",
      `pageNo: of a filtered journal the first ${COUNTED_MAX} entries have numbers; go on by next`,
    );
  }
  const positions = (end: number, limit: number) =>
    store
      .prepare<number>(selectEntries("c.position", filter, descending ? "DESC" : "ASC"))
      .pluck()
      .all({ ...filter, after, end, limit });
  const end = descending ? last - 1 : asOf;
  const found = positions(end, skip + pageSize + 1);
  const items = entriesAt(store, found.slice(skip, skip + pageSize));
  const totalCount = known ?? Math.max(found.length, positions(end, COUNTED_MAX).length);
  const lastItem = items.at(-1)?.position;
  const cursor = descending ? encodeCursor([asOf, pageNo + 1, lastItem, totalCount, list]) : "";
  const next = descending ? `${after}.${cursor}` : String(lastItem);
  return {
    ...{ items, totalCount, pageNo, pageSize, asOf },
    next: lastItem !== undefined && found.length > skip + pageSize ? next : null,
  };
}

/** Oldest first: entries are numbered, so any page is found without the pages before it. */
function pageByPosition(
  store: Store,
  { workspace, after, asOf }: Range,
  { pageNo, pageSize }: { readonly pageNo: number; readonly pageSize: number },
): Page<JournalEntry> {
  const before = entryAt(store, workspace, after);
  const totalCount = Math.max(0, entryAt(store, workspace, asOf) - before);
  const skip = (pageNo - 1) * pageSize;
  const start = pageNo === 1 ? after : positionOfEntry(store, workspace, before + skip, after, asOf);
  const items = skip >= totalCount ? [] : entriesBetween(store, workspace, start, asOf, pageSize);
  const end = items.at(-1);
  const next = end !== undefined && skip + items.length < totalCount ? String(end.position) : null;
  return { items, totalCount, pageNo, pageSize, asOf, next };
}

/** [position of the first page, pageNo, items before, mark of the list]. */
const endCursor = z.tuple([count, z.number().int().min(1), count, z.string()]);

/** Newest first, from the position of the first page on. */
function pageFromTheEnd(
  store: Store,
  { workspace, after, asOf: shown }: Range,
  query: { readonly pageNo: number; readonly pageSize: number; readonly cursor: string | undefined },
): Page<JournalEntry> {
  const { pageSize } = query;
  const list = listMark(["journal", workspace, after]);
  const [asOf, pageNo, skip, itsList] =
    query.cursor === undefined
      ? [shown, query.pageNo, (query.pageNo - 1) * pageSize, list]
      : decodeCursor(query.cursor, endCursor);
  if (asOf > shown || itsList !== list) throw badCursor();
  const newest = entryAt(store, workspace, asOf);
  const totalCount = Math.max(0, newest - entryAt(store, workspace, after));
  const start = positionOfEntry(store, workspace, newest - skip, after, asOf);
  const items = skip >= totalCount ? [] : entriesUpTo(store, workspace, after, start, pageSize);
  const end = skip + items.length;
  const next = items.length > 0 && end < totalCount ? `${after}.${encodeCursor([asOf, pageNo + 1, end, list])}` : null;
  return { items, totalCount, pageNo, pageSize, asOf, next };
}

/** Returns the entries of a workspace with `after` < position <= `end`, newest first. */
function entriesUpTo(store: Store, workspace: string, after: number, end: number, limit: number): JournalEntry[] {
  return store
    .prepare<EntryRow>(`${ENTRIES} ORDER BY c.position DESC LIMIT +?`)
    .all(workspace, after, end, limit)
    .map(showEntry);
}

/** Returns the number of the last entry at or before a position; 0 before the first one. */
function entryAt(store: Store, workspace: string, position: number): number {
  const row = store
    .prepare<{ entry: number }>(
      `SELECT entry FROM change WHERE workspace = ? AND entry IS NOT NULL AND position <= ?
       ORDER BY position DESC LIMIT 1`,
    )
    .get(workspace, position);
  return row?.entry ?? 0;
}

/** Returns the position at which the workspace had this many entries, by binary search. */
function positionOfEntry(store: Store, workspace: string, entry: number, low: number, high: number): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (entryAt(store, workspace, middle) >= entry) to = middle;
    else from = middle + 1;
  }
  return from;
}
