/**
 * The items of a listing as of a position, in batches: the children of a folder, or all nodes below it. Other changes
 * may happen between two batches. A place that ends meanwhile is found again among the past ones, so nothing is missed,
 * and some rows come twice.
 */
import { joinPath } from "../contract/names.ts";
import type { Node } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { lastChangeOf } from "./lag.ts";
import { MAIN, nodeAt, onBranch, showNode } from "./node-rows.ts";
import type { Row, SortValue } from "./sorted-lists.ts";
import type { Store } from "./store.ts";

const BATCH = 2000;

/**
 * Fields of a node by which a listing can be ordered: their SQL in `place` p and `node` n, and the part of the node on
 * which their value depends.
 */
export const NODE_FIELDS = {
  // Ties are in the order of ids.
  id: { column: "NULL", of: "node" },
  kind: { column: "n.kind", of: "node" },
  path: { column: "p.name", of: "place" },
  name: { column: "p.name", of: "place" },
  parentId: { column: "n.parent", of: "state" },
  mimeType: { column: "n.mime_type", of: "content" },
  size: { column: "ifnull(n.size, 0)", of: "content" },
  head: { column: "n.head", of: "content" },
  contentHash: { column: "n.hash", of: "content" },
  lastKey: { column: "n.key", of: "state" },
  revision: { column: "n.revision", of: "state" },
  createdAt: { column: "n.created_at", of: "node" },
  modifiedAt: { column: "ifnull(n.head_time, n.created_at)", of: "content" },
  // Ordered by their JSON text, as the item shows it. They depend on the content, because a branch has an mtime of its
  // own.
  attributes: { column: "n.attributes", of: "content" },
} as const satisfies Record<keyof Node, { column: string; of: "node" | "place" | "state" | "content" }>;

export type NodeField = keyof typeof NODE_FIELDS;

export interface Scope {
  readonly folder: string;
  /** Path of the folder, as of the position. */
  readonly path: string;
  readonly recursive: boolean;
  /** Only nodes of this name. */
  readonly name?: string | undefined;
  readonly branch?: string | undefined;
  readonly asOf: number;
}

interface PlaceRow {
  readonly row: number;
  readonly id: string;
  readonly kind: string;
  readonly position: number;
  readonly name: string;
  readonly value: SortValue;
}

interface Folder {
  readonly id: string;
  readonly path: string;
}

/** The numbers of all rows of a listing, ordered by a field. */
export function sortedListing(
  { store, lists }: Context,
  workspace: string,
  scope: Scope,
  field: NodeField,
): Promise<Float64Array> {
  const { folder, recursive, name, branch, asOf } = scope;
  const changedAt = lastChangeOf(store, workspace, asOf);
  const key = JSON.stringify(["nodes", folder, changedAt, recursive, name ?? null, branch ?? null, field]);
  return lists.get(key, () => listingRows(store, scope, field));
}

function* listingRows(store: Store, scope: Scope, field: NodeField): Generator<readonly Row[]> {
  const folders: Folder[] = [{ id: scope.folder, path: scope.path }];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const batch of placesOf(store, folder.id, scope.asOf, field)) {
      const rows: Row[] = [];
      for (const place of batch) {
        const path = scope.recursive ? joinPath(folder.path, place.name) : "";
        if (scope.recursive && place.kind === "folder") folders.push({ id: place.id, path });
        if (scope.name !== undefined && place.name !== scope.name) continue;
        rows.push({ row: place.row, id: place.id, value: sortValueOf(store, scope, field, place, path) });
      }
      yield rows;
    }
  }
}

function sortValueOf(store: Store, scope: Scope, field: NodeField, place: PlaceRow, path: string): SortValue {
  if (field === "path" && scope.recursive) return path;
  const { of } = NODE_FIELDS[field];
  const isCurrent = place.position <= scope.asOf && (of !== "content" || (scope.branch ?? MAIN) === MAIN);
  if (of === "node" || of === "place" || isCurrent) return place.value;
  const row = nodeAt(store, place.id, scope.asOf);
  if (row === undefined) throw new Error(`Node ${place.id} was not there at ${scope.asOf}.`);
  const then = onBranch(store, row, scope.branch, scope.asOf);
  if (field === "modifiedAt") return then.headTime ?? then.createdAt;
  return field === "attributes" ? then.attributes : showNode(then, path)[field];
}

function* placesOf(store: Store, folder: string, asOf: number, field: NodeField): Generator<readonly PlaceRow[]> {
  const columns = `n.rowid AS row, n.id, n.kind, n.position, p.name, ${NODE_FIELDS[field].column} AS value`;
  const places = store.prepare<PlaceRow>(
    `SELECT ${columns} FROM place p CROSS JOIN node n ON n.id = p.node
     WHERE p.parent = ? AND p.name > ? AND p.since <= ? ORDER BY p.name LIMIT ${BATCH}`,
  );
  let name = "";
  for (let more = true; more; ) {
    const batch = places.all(folder, name, asOf);
    name = batch.at(-1)?.name ?? name;
    more = batch.length === BATCH;
    yield batch;
  }
  const past = store.prepare<PlaceRow & { readonly until: number }>(
    `SELECT ${columns}, p.until FROM past_place p CROSS JOIN node n ON n.id = p.node
     WHERE p.parent = ? AND (p.until, p.name) > (?, ?) AND p.since <= ? ORDER BY p.until, p.name LIMIT ${BATCH}`,
  );
  let key: readonly [number, string] = [asOf + 1, ""];
  for (let more = true; more; ) {
    const batch = past.all(folder, ...key, asOf);
    const last = batch.at(-1);
    if (last !== undefined) key = [last.until, last.name];
    more = batch.length === BATCH;
    yield batch;
  }
}
