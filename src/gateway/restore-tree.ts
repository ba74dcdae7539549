/**
 * Restores a node and all nodes below it as of a moment, one slice per request. The way through the past tree is in
 * `next`, so nothing is kept between two requests. Each slice is one transaction and compares the past with the
 * present, so that a slice may be requested twice.
 *
 * The past nodes come first, a folder before its content. With `exact` they are followed by the present nodes that did
 * not exist then, the content of a folder before the folder. The topmost node stays where it is, unless it is deleted.
 */
import { z } from "zod";
import { joinPath } from "../contract/names.ts";
import { PAGE_SIZE_MAX, type RestoredItem, type RestoredSlice } from "../contract/resources.ts";
import { changeOf } from "./access.ts";
import { beginChange, type Change } from "./changes.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { lastChange, positionAt } from "./lag.ts";
import { findNode, type NodeRow, nodeAt, pathOf, showCurrent } from "./node-rows.ts";
import { badCursor, decodeCursor, encodeCursor, listMark } from "./paging.ts";
import { conflict, invalid, notFound } from "./problems.ts";
import { type Restoring, removeNode, restoreContent, restorePlace } from "./restored-nodes.ts";
import { requireRestorable } from "./retention/index.ts";
import { requireScope } from "./scopes.ts";
import type { Store } from "./store.ts";
import { visibleNode } from "./workspaces.ts";

/** Costs within a slice: looking at a name, comparing a node, changing a node; and the cost that ends a slice. */
const COSTS = { look: 1, compare: 4, change: 6 };
const COST_MAX = 1500;

/** A folder on the way, and how far it is done: among its places, or among its past places once `until` is above 0. */
const level = z.object({
  id: z.string(),
  /** For the topmost folder its path. */
  name: z.string(),
  until: z.number().int().min(0),
  after: z.string(),
});
type Level = z.infer<typeof level>;
/** [position of the moment, the tree in progress, the way down, mark of the restoration]. */
const cursor = z.tuple([z.number().int().min(0), z.enum(["then", "now"]), z.array(level), z.string()]);

export function restoreTree(context: Context, call: Call<"restoreTree">): GatewayAnswer {
  const { json } = call;
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  if (json.exact === true) requireScope(call.caller, "node.file.delete");
  const slice = () => restoreSlice(context, call, json);
  return jsonAnswer(200, json.plan === true ? slice() : context.store.transaction(slice));
}

type Wanted = NonNullable<Call<"restoreTree">["json"]>;

function restoreSlice(context: Context, call: Call<"restoreTree">, wanted: Wanted): RestoredSlice {
  const { store } = context;
  const { at, exact = false, plan = false, after = "", pageSize = PAGE_SIZE_MAX } = wanted;
  const row = visibleNode(context, call.caller, call.parameters.nodeId);
  const mark = listMark([row.id, at, exact, plan]);
  const begun = after === "" ? undefined : decodeCursor(after, cursor);
  if (begun !== undefined && begun[3] !== mark) throw badCursor();
  const position = begun?.[0] ?? positionAt(store, Date.parse(at));
  if (position > lastChange(store).position) throw badCursor();

  const items: RestoredItem[] = [];
  let cost = 0;
  let change: Change | undefined;
  let changedAt: number | null = null;
  const restoring: Restoring = {
    ...{ context, root: row.id, position, exact, plan },
    moment: new Date(at).toISOString().slice(0, 19).replace("T", " ").replaceAll(":", "."),
    change() {
      change ??= beginChange(context, changeOf(call.caller, wanted.idempotencyKey));
      return change;
    },
    onItem: (item) => void items.push(item),
    changedAt(position) {
      changedAt = position;
      cost += COSTS.change;
    },
    wasIn: wasInTree(store, row.id, position),
  };
  const way = begun === undefined ? restoreTopmost(restoring, row) : wayAgain(store, row, plan, begun[2]);
  let phase = begun?.[1] ?? "then";
  for (; cost < COST_MAX && items.length < pageSize; cost += COSTS.look) {
    const folder = way.at(-1);
    if (folder === undefined) {
      if (phase === "now" || !exact || row.kind === "file") break;
      phase = "now";
      way.push({ id: row.id, name: "", until: 0, after: "" });
    } else if (phase === "then") {
      const spent = restoreNext(restoring, way, folder);
      cost += spent;
    } else removeNext(restoring, way, folder);
  }
  const isDone = way.length === 0 && (phase === "now" || !exact || row.kind === "file");
  const next = isDone ? null : encodeCursor([position, phase, way, mark]);
  return { items, next, position: changedAt };
}

/** Returns the way into the node. */
function restoreTopmost(restoring: Restoring, row: NodeRow): Level[] {
  const { store } = restoring.context;
  const then = nodeAt(store, row.id, restoring.position);
  if (then === undefined || then.deleted === 1)
    throw notFound(`at: the node ${JSON.stringify(row.id)} was not there then.`);
  let path = pathOf(store, row, Number.POSITIVE_INFINITY);
  if (row.deleted === 1 && then.parent !== null) {
    const parent = findNode(store, then.parent);
    if (parent === undefined || parent.deleted === 1) {
      const stands = parent === undefined ? undefined : showCurrent(store, parent);
      throw conflict("The folder it was in is deleted: restore that first.", stands);
    }
    requireRestorable(store, row.id);
    const above = pathOf(store, parent, Number.POSITIVE_INFINITY);
    path = joinPath(above, restorePlace(restoring, row, then, parent.id, above) ?? row.name);
  }
  restoreContent(restoring, row.id, then, path);
  return row.kind === "folder" ? [{ id: row.id, name: path, until: 0, after: "" }] : [];
}

/**
 * Checks the way down that came back with the request: it must lead to folders of this workspace. When a folder is not
 * in the folder above it any more, the way ends there.
 */
function wayAgain(store: Store, top: NodeRow, plan: boolean, earlier: readonly Level[]): Level[] {
  const way: Level[] = [];
  for (const step of earlier) {
    const row = findNode(store, step.id);
    if (row === undefined || row.workspace !== top.workspace) throw badCursor();
    const above = way.at(-1);
    const isThere = row.deleted === 0 && (above === undefined ? row.id === top.id : row.parent === above.id);
    if (!plan && !isThere) break;
    way.push({ ...step });
  }
  return way;
}

interface PlaceRow {
  readonly name: string;
  readonly node: string;
  readonly since: number;
  readonly until: number;
}

/** Restores the next node that was in the folder then. Returns the cost of that, without the cost of changes. */
function restoreNext(restoring: Restoring, way: Level[], folder: Level): number {
  const { context, position } = restoring;
  const { store } = context;
  const place =
    folder.until === 0
      ? store
          .prepare<PlaceRow>(
            "SELECT name, node, since, 0 AS until FROM place WHERE parent = ? AND name > ? ORDER BY name LIMIT 1",
          )
          .get(folder.id, folder.after)
      : store
          .prepare<PlaceRow>(
            `SELECT name, node, since, until FROM past_place WHERE parent = ? AND (until, name) > (?, ?)
             ORDER BY until, name LIMIT 1`,
          )
          .get(folder.id, folder.until, folder.after);
  if (place === undefined) {
    // A node that leaves its place meanwhile is among the past places that come next.
    if (folder.until === 0) Object.assign(folder, { until: position + 1, after: "" });
    else way.pop();
    return 0;
  }
  Object.assign(folder, { until: place.until, after: place.name });
  if (place.since > position) return 0;
  const [now, then] = [findNode(store, place.node), nodeAt(store, place.node, position)];
  if (now === undefined || then === undefined) return COSTS.compare;
  const path = way.slice(1).reduce((above, { name }) => joinPath(above, name), way[0]?.name ?? "/");
  const name = restorePlace(restoring, now, then, folder.id, path);
  if (name === undefined) return COSTS.compare;
  restoreContent(restoring, now.id, then, joinPath(path, name));
  if (now.kind === "folder") way.push({ id: now.id, name, until: 0, after: "" });
  return COSTS.compare;
}

/** Removes the next node that is in the folder now; after the last one the folder itself. */
function removeNext(restoring: Restoring, way: Level[], folder: Level): void {
  const { context, root, wasIn } = restoring;
  const { store } = context;
  const child = store
    .prepare<{ id: string; name: string; kind: string }>(
      "SELECT id, name, kind FROM node WHERE parent = ? AND name > ? AND deleted = 0 ORDER BY name LIMIT 1",
    )
    .get(folder.id, folder.after);
  if (child === undefined) way.pop();
  else folder.after = child.name;
  if (child?.kind === "folder") {
    way.push({ id: child.id, name: "", until: 0, after: "" });
    return;
  }
  const id = child?.id ?? folder.id;
  if (id === root || wasIn(id)) return;
  const row = findNode(store, id);
  if (row !== undefined && row.deleted === 0) removeNode(restoring, row);
}

/** True if a node was the topmost one at a position, or below it. */
function wasInTree(store: Store, root: string, position: number): (id: string) => boolean {
  const known = new Map<string, boolean>([[root, true]]);
  return (id) => {
    const way: string[] = [];
    let at: string | null = id;
    while (at !== null && !known.has(at)) {
      way.push(at);
      const then: NodeRow | undefined = nodeAt(store, at, position);
      at = then === undefined || then.deleted === 1 ? null : then.parent;
    }
    const isIn = at !== null && known.get(at) === true;
    for (const one of way) known.set(one, isIn);
    return isIn;
  };
}
