/**
 * The nodes of a folder, or all nodes below it, as the path index shows them or showed them in the past. Every page is
 * answered as of one position. Pages by `after=` keep the position of the first page, so they show the same list
 * whatever happens, in any order.
 */
import { z } from "zod";
import { shownPosition } from "./as-of.ts";
import type { Context } from "./context.ts";
import { listDeleted } from "./deleted.ts";
import { type Call, type GatewayAnswer, jsonAnswer, jsonTextAnswer } from "./exchange.ts";
import { NODE_FIELDS, type NodeField, type Scope, sortedListing } from "./listing-rows.ts";
import { deltaSince, isMarked, pageAfter, pageAt } from "./marked-pages.ts";
import { nodesAsJson } from "./node-json.ts";
import { isPlaced, type NodeRow, nodeAt, nodeByPath, pathOf, placedChild } from "./node-rows.ts";
import { linesBelow } from "./node-stream.ts";
import { badCursor, decodeCursor, encodeCursor, listMark, parseOrder, sliceOf } from "./paging.ts";
import { parsePath } from "./paths.ts";
import { countPlaces, type Key, keyOf } from "./places.ts";
import { invalid, notFound } from "./problems.ts";
import type { Caller } from "./tokens.ts";
import { callWorkspace, visibleNode } from "./workspaces.ts";

const FIELDS = Object.keys(NODE_FIELDS) as NodeField[];

const count = z.number().int().min(0);
/** [position, pageNo, totalCount, items before, key of the last one or null, mark of the list]. */
const cursor = z.tuple([
  count,
  z.number().int().min(1),
  count,
  count,
  z.tuple([z.union([z.string(), z.number()]), z.string()]).nullable(),
  z.string(),
]);

interface Order {
  readonly field: NodeField;
  readonly descending: boolean;
}

export async function listNodes(context: Context, call: Call<"listNodes">): Promise<GatewayAnswer> {
  const { query } = call;
  if (query.deleted) return listDeletedNodes(context, call);
  const order = parseOrder(query.orderBy, FIELDS, "name");
  const from = query.after === undefined || query.after === "" ? undefined : decodeCursor(query.after, cursor);
  const shown = shownPosition(context, query.at);
  const [asOf, number, known, before, key, itsList] = from ?? [shown, 1, undefined, undefined, null, undefined];
  if (asOf > shown) throw badCursor();
  const folder = folderAsked(context, call, asOf);
  const { name, recursive, branch } = query;
  const list = listMark([folder.id, name ?? null, recursive, branch ?? null, order.field, order.descending]);
  if (itsList !== undefined && itsList !== list) throw badCursor();
  if (key !== null && (typeof key[0] === "number") !== (order.field === "createdAt")) throw badCursor();
  const { pageSize } = query;
  const pageNo = query.after === undefined ? query.pageNo : number;
  const offset = before ?? (pageNo - 1) * pageSize;

  const scope: Scope = {
    folder: folder.id,
    path: pathOf(context.store, folder, asOf),
    recursive,
    name,
    branch,
    asOf,
  };
  const page = { offset, key, limit: pageSize };
  const { items, size, totalCount, last } = await readPage(context, folder.workspace, scope, order, page);
  const end = offset + size;
  const total = known ?? totalCount;
  const next = size > 0 && end < total ? encodeCursor([asOf, pageNo + 1, total, end, last, list]) : null;
  const rest = JSON.stringify({ totalCount: total, pageNo, pageSize, asOf, next });
  return jsonTextAnswer(200, `{"items":[${items.join(",")}],${rest.slice(1)}`);
}

/** All nodes below a folder, as lines. */
export function streamNodes(context: Context, call: Call<"streamNodes">): GatewayAnswer {
  const { query, caller } = call;
  return linesBelow(context, call, (asOf) =>
    folderAsked(context, { caller, query: { ...query, deleted: false } }, asOf),
  );
}

async function listDeletedNodes(context: Context, call: Call<"listNodes">): Promise<GatewayAnswer> {
  const { at, branch, recursive, name } = call.query;
  if (at !== undefined) throw invalid("at", "at: not with deleted, which lists the nodes that can be restored now");
  if (branch !== undefined)
    throw invalid("branch", "branch: not with deleted, because a node is deleted on all branches");
  const asOf = shownPosition(context);
  const folder = folderAsked(context, call, asOf);
  const path = pathOf(context.store, folder, asOf);
  return jsonAnswer(200, await listDeleted(context, call.query, { folder, path, recursive, name, asOf }));
}

interface Page {
  /** JSON of each. */
  readonly items: readonly string[];
  readonly size: number;
  readonly totalCount: number;
  /** Key of the last item, when the next page can go on from a key. */
  readonly last: Key | null;
}

async function readPage(
  context: Context,
  workspace: string,
  scope: Scope,
  { field, descending }: Order,
  { offset, key, limit }: { readonly offset: number; readonly key: Key | null; readonly limit: number },
): Promise<Page> {
  const { store } = context;
  const { folder, asOf, branch } = scope;
  if (scope.name !== undefined && !scope.recursive) {
    const only = placedChild(store, folder, scope.name, asOf);
    const refs = only === undefined || offset > 0 ? [] : [only];
    const items = nodesAsJson(store, { by: "id", refs }, folder, asOf, branch);
    return { items, size: refs.length, totalCount: only === undefined ? 0 : 1, last: null };
  }
  // Within one folder, names compare as paths do.
  const marked = field === "path" && !scope.recursive ? "name" : field;
  const delta = isMarked(marked) && !scope.recursive ? deltaSince(store, folder, marked, asOf) : undefined;
  if (isMarked(marked) && delta !== undefined) {
    const page = { folder, field: marked, descending, asOf, delta, limit };
    const refs = key === null ? pageAt(store, page, offset) : pageAfter(store, page, key);
    const last = refs.at(-1);
    const lastRow = last === undefined ? undefined : nodeAt(store, last, asOf);
    return {
      items: nodesAsJson(store, { by: "id", refs }, folder, asOf, branch),
      size: refs.length,
      totalCount: countPlaces(store, folder) - delta.newer.length + delta.gone.length,
      // A place has the name that its node had then.
      last: lastRow === undefined ? null : keyOf(marked, { ...lastRow, node: lastRow.id }),
    };
  }
  const rows = await sortedListing(context, workspace, scope, field);
  const refs = sliceOf(rows, descending, offset, limit);
  return {
    items: nodesAsJson(store, { by: "row", refs }, scope.recursive ? undefined : folder, asOf, branch),
    size: refs.length,
    totalCount: rows.length,
    last: null,
  };
}

interface FolderCall {
  readonly caller: Caller;
  readonly query: Pick<Call<"listNodes">["query"], "workspace" | "path" | "parentId" | "deleted">;
}

/**
 * Returns the folder as it was at the position. A folder that the store has but the index does not know yet is empty as
 * of that position. An unprovisioned folder is not found. Of a deleted folder only the nodes that were deleted from it
 * are listed.
 */
function folderAsked(context: Context, call: FolderCall, asOf: number): NodeRow {
  const { store } = context;
  const { path, parentId } = call.query;
  if (parentId === undefined) {
    const workspace = callWorkspace(context, call.caller, call.query.workspace);
    const row = nodeByPath(store, workspace.root, parsePath(path ?? "/"), asOf);
    if (row === undefined) throw notFound(`There is no folder at ${JSON.stringify(path)}.`);
    if (row.kind !== "folder") throw invalid("path", "path: expected a folder, got a file");
    return row;
  }
  if (path !== undefined) throw invalid("path", "path: expected either path or parentId");
  const now = visibleNode(context, call.caller, parentId);
  if (now.kind !== "folder") throw invalid("parentId", "parentId: expected a folder, got a file");
  const then = nodeAt(store, parentId, asOf);
  if (then !== undefined && (call.query.deleted || isPlaced(store, parentId, asOf))) return then;
  if (now.deleted === 1 || now.provisioned === 0) throw notFound(`There is no folder ${JSON.stringify(parentId)}.`);
  return now;
}
