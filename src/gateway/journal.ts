/** The journal: what changed, in the order of positions, shown as late as its lag; and entries told by callers. */
import type { JournalEntry } from "../contract/resources.ts";
import { beginChange, recordActivity } from "./changes.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { once } from "./idempotency.ts";
import { pageOf, parseOrder } from "./paging.ts";
import { invalid, notFound } from "./problems.ts";
import type { Store } from "./store.ts";
import { callWorkspace, visibleNode } from "./workspaces.ts";

interface EntryRow {
  readonly position: number;
  readonly time: number;
  readonly kind: string;
  readonly nodeId: string;
  readonly revision: number;
  readonly parentId: string | null;
  readonly name: string;
  readonly head: string | null;
  readonly contentHash: string | null;
  readonly key: string | null;
}

const ENTRY_COLUMNS = `c.position, c.time, c.kind, c.node AS nodeId, c.revision, c.parent AS parentId, c.name, c.head,
  v.hash AS contentHash, c.key`;

function showEntry(row: EntryRow): JournalEntry {
  return { ...row, time: new Date(row.time).toISOString() };
}

export function appendJournal(context: Context, call: Call<"appendJournal">): GatewayAnswer {
  const { json } = call;
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  // Entries that lie about a node would mislead those who follow the journal.
  if (json.kind === "deleted") throw invalid("kind", 'kind: "deleted" is the gateway\'s own');
  return context.store.transaction(() => {
    const row = visibleNode(context, call.caller, json.nodeId);
    const request = { workspace: row.workspace, key: json.idempotencyKey, same: ["appendJournal", row.id, json.kind] };
    return once(context, request, () => {
      if (row.deleted === 1) throw notFound(`The node ${JSON.stringify(row.id)} is deleted.`);
      const change = beginChange(context, json.idempotencyKey);
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

/** The entries of a workspace with `after` < position <= `end`, oldest first. */
export function entriesBetween(
  store: Store,
  workspace: string,
  after: number,
  end: number,
  limit: number,
): JournalEntry[] {
  return store
    .prepare<EntryRow>(
      `SELECT ${ENTRY_COLUMNS} FROM change c LEFT JOIN version v ON v.id = c.head
       WHERE c.workspace = ? AND c.entry IS NOT NULL AND c.position > ? AND c.position <= ? ORDER BY c.position LIMIT ?`,
    )
    .all(workspace, after, end, limit)
    .map(showEntry);
}

export function readJournal(context: Context, call: Call<"readJournal">): GatewayAnswer {
  const { store } = context;
  const { query } = call;
  const workspace = callWorkspace(context, call.caller, query.workspace);
  // Times go up with positions: both orders are one.
  const { descending } = parseOrder(query.orderBy, ["position", "time"], "position");
  const asOf = context.journalLag.shown();
  const lastEntry = store.prepare<{ entry: number }>(
    `SELECT entry FROM change WHERE workspace = ? AND entry IS NOT NULL AND position <= ?
     ORDER BY position DESC LIMIT 1`,
  );
  const before = lastEntry.get(workspace.id, query.after)?.entry ?? 0;
  const last = lastEntry.get(workspace.id, asOf)?.entry ?? 0;
  const skip = (query.pageNo - 1) * query.pageSize;
  const items = store
    .prepare<EntryRow>(
      `SELECT ${ENTRY_COLUMNS} FROM change c LEFT JOIN version v ON v.id = c.head
       WHERE c.workspace = ? AND c.entry IS NOT NULL AND c.position > ? AND c.position <= ?
       ORDER BY c.position ${descending ? "DESC" : "ASC"} LIMIT ? OFFSET ?`,
    )
    .all(workspace.id, query.after, asOf, query.pageSize, skip)
    .map(showEntry);
  const totalCount = Math.max(0, last - before);
  const end = items.at(-1);
  const slice = {
    items,
    totalCount,
    next: !descending && end !== undefined && skip + items.length < totalCount ? String(end.position) : null,
  };
  return jsonAnswer(200, pageOf(slice, { pageNo: query.pageNo, pageSize: query.pageSize }, asOf));
}
