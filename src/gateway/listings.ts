/**
 * The children of a folder as the path index shows them, or showed them at a moment of the past.
 * A page is answered as of one position: what has its place since, and what has lost it after.
 * Pages by `after=` keep the position of the first, so they show one snapshot whatever happens.
 */
import { z } from "zod";
import { shownPosition } from "./as-of.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import {
  childPath,
  isPlaced,
  NODE_COLUMNS,
  type NodeRow,
  nodeAt,
  nodeByPath,
  pathOf,
  STATE_JOINS,
  showNode,
} from "./node-rows.ts";
import { decodeCursor, encodeCursor, type Order, pageOf, parseOrder } from "./paging.ts";
import { parsePath } from "./paths.ts";
import { invalid, notFound } from "./problems.ts";
import { callWorkspace, visibleNode } from "./workspaces.ts";

/** Fields of a node a listing can be ordered by, and where they are in the joined rows. */
const ORDERS: Readonly<Record<string, string>> = {
  id: "n.id",
  kind: "n.kind",
  // Within one folder, and names compare as paths do.
  path: "placed.name",
  name: "placed.name",
  parentId: "c.parent",
  mimeType: "v.mime_type",
  size: "ifnull(v.size, 0)",
  head: "c.head",
  contentHash: "v.hash",
  lastKey: "c.key",
  revision: "c.revision",
  createdAt: "n.created_at",
  modifiedAt: "ifnull(v.created_at, n.created_at)",
};

const PLACED = `
  SELECT name, node FROM place WHERE parent = :folder AND since <= :asOf
  UNION ALL
  SELECT name, node FROM past_place WHERE parent = :folder AND until > :asOf AND since <= :asOf`;

/** [position, pageNo, totalCount, last name]. */
const cursor = z.tuple([z.number().int().min(0), z.number().int().min(1), z.number().int().min(0), z.string()]);

export function listNodes(context: Context, call: Call<"listNodes">): GatewayAnswer {
  const { query } = call;
  const order = parseOrder(query.orderBy, Object.keys(ORDERS), "name");
  const byKey = query.after !== undefined;
  if (byKey && (order.field !== "name" || order.descending)) {
    throw invalid("orderBy", "orderBy: pages by after= are ordered by name");
  }
  const shown = shownPosition(context, query.at);
  const from = query.after === undefined || query.after === "" ? undefined : decodeCursor(query.after, cursor);
  const [asOf, pageNo, known, last] = from ?? [shown, byKey ? 1 : query.pageNo, undefined, undefined];
  if (asOf > shown) throw invalid("after", "after: expected the next of a page of this list, or nothing");

  const folder = folderAsked(context, call, asOf);
  if (query.name !== undefined) return oneName(context, call, folder, query.name, asOf);

  const totalCount = known ?? countPlaced(context, folder.id, asOf);
  const { pageSize } = query;
  const rows = byKey
    ? pageByName(context, { folder: folder.id, asOf, limit: pageSize + 1, after: last ?? "" })
    : pageByNumber(context, { folder: folder.id, asOf, limit: pageSize, offset: (pageNo - 1) * pageSize }, order);
  const items = rows.slice(0, pageSize);
  const path = pathOf(context.store, folder, asOf);
  const end = items.at(-1);
  return jsonAnswer(
    200,
    pageOf(
      {
        items: items.map((row) => showNode(row, childPath(path, row))),
        totalCount,
        next:
          byKey && rows.length > pageSize && end !== undefined
            ? encodeCursor([asOf, pageNo + 1, totalCount, end.name])
            : null,
      },
      { pageNo, pageSize },
      asOf,
    ),
  );
}

/**
 * The folder as it was at the position. A folder the index does not know yet but the store has is
 * empty as of that position; an unprovisioned one is not found.
 */
function folderAsked(context: Context, call: Call<"listNodes">, asOf: number): NodeRow {
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
  if (then !== undefined && isPlaced(store, parentId, asOf)) return then;
  if (now.deleted === 1 || now.provisioned === 0) throw notFound(`There is no folder ${JSON.stringify(parentId)}.`);
  return now;
}

function countPlaced(context: Context, folder: string, asOf: number): number {
  const row = context.store
    .prepare<{ total: number }>(
      `SELECT (SELECT count(*) FROM place WHERE parent = :folder AND since <= :asOf) +
              (SELECT count(*) FROM past_place WHERE parent = :folder AND until > :asOf AND since <= :asOf) AS total`,
    )
    .get({ folder, asOf });
  return row?.total ?? 0;
}

function pageByName(
  context: Context,
  parameters: { folder: string; asOf: number; limit: number; after: string },
): NodeRow[] {
  return context.store
    .prepare<NodeRow>(
      `SELECT ${NODE_COLUMNS} FROM (
         SELECT name, node FROM place WHERE parent = :folder AND name > :after AND since <= :asOf
         UNION ALL
         SELECT name, node FROM past_place WHERE parent = :folder AND until > :asOf AND since <= :asOf AND name > :after
         ORDER BY name LIMIT :limit) placed
       JOIN node n ON n.id = placed.node ${STATE_JOINS} ORDER BY placed.name`,
    )
    .all(parameters);
}

function pageByNumber(
  context: Context,
  parameters: { folder: string; asOf: number; limit: number; offset: number },
  order: Order,
): NodeRow[] {
  const direction = order.descending ? "DESC" : "ASC";
  if (order.field === "name" || order.field === "path") {
    // The names alone decide which rows are needed.
    return context.store
      .prepare<NodeRow>(
        `SELECT ${NODE_COLUMNS} FROM (${PLACED} ORDER BY name ${direction} LIMIT :limit OFFSET :offset) placed
         JOIN node n ON n.id = placed.node ${STATE_JOINS} ORDER BY placed.name ${direction}`,
      )
      .all(parameters);
  }
  return context.store
    .prepare<NodeRow>(
      `SELECT ${NODE_COLUMNS} FROM (${PLACED}) placed JOIN node n ON n.id = placed.node ${STATE_JOINS}
       ORDER BY ${ORDERS[order.field]} ${direction}, placed.name LIMIT :limit OFFSET :offset`,
    )
    .all(parameters);
}

/** The listing narrowed to one name: none or one item. */
function oneName(
  context: Context,
  call: Call<"listNodes">,
  folder: NodeRow,
  name: string,
  asOf: number,
): GatewayAnswer {
  const { store } = context;
  const row = nodeByPath(store, folder.id, [name], asOf);
  const items = row === undefined ? [] : [showNode(row, childPath(pathOf(store, folder, asOf), row))];
  const { pageNo, pageSize } = call.query;
  const slice = { items: pageNo === 1 ? items : [], totalCount: items.length, next: null };
  return jsonAnswer(200, pageOf(slice, { pageNo, pageSize }, asOf));
}
