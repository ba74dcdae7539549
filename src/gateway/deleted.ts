/**
 * The nodes that were deleted from a folder, or from anywhere below it, and can be restored: as of a position, like
 * every listing. A deleted node has the place that it was deleted from. If that folder is deleted too, the place is
 * below that folder's own.
 */
import { joinPath } from "../contract/names.ts";
import type { ListedNode } from "../contract/resources.ts";
import { shownAuthor } from "./access.ts";
import { stateAt } from "./attribute-states.ts";
import type { Context } from "./context.ts";
import { lastChangeOf } from "./lag.ts";
import type { NODE_FIELDS } from "./listing-rows.ts";
import { type NodeRow, placeOf, showNode } from "./node-rows.ts";
import { type Page, type PageQuery, pageOfList } from "./paging.ts";
import { inBatches, type SortValue } from "./sorted-lists.ts";
import type { Store } from "./store.ts";

/** The folder as of the position, and the choice of its nodes. */
interface DeletedScope {
  readonly folder: Pick<NodeRow, "id" | "workspace">;
  /** The path of the folder. */
  readonly path: string;
  readonly recursive: boolean;
  readonly name: string | undefined;
  readonly asOf: number;
}

/** Fields of an item, and their tables: `node` n, the `change` c that deleted it, and its head, `version` v. */
const FIELDS = {
  id: "NULL",
  kind: "n.kind",
  path: "NULL",
  name: "c.name",
  parentId: "c.parent",
  mimeType: "v.mime_type",
  size: "ifnull(v.size, 0)",
  head: "c.head",
  contentHash: "v.hash",
  lastKey: "c.key",
  revision: "c.revision",
  createdAt: "n.created_at",
  modifiedAt: "ifnull(v.created_at, n.created_at)",
  attributes: "n.attributes",
  deletedAt: "c.time",
  deletedBy: "c.by ->> 'account'",
} as const satisfies Record<keyof typeof NODE_FIELDS | keyof ListedNode, string>;
type Field = keyof typeof FIELDS;

const BATCH = 2000;

/**
 * True if the change that deleted the node is its last one as of the position, and the node is not pruned (retention/).
 */
const IS_DELETED = `(n.position = c.position OR n.position > :asOf AND NOT EXISTS (
    SELECT 1 FROM change l WHERE l.node = c.node AND l.activity = 0 AND l.position > c.position AND l.position <= :asOf))
  AND n.purged = 0`;

interface DeletedRow {
  /** Position of the change that deleted it. */
  readonly row: number;
  readonly id: string;
  readonly parent: string;
  readonly name: string;
  readonly value: SortValue;
  readonly isListed: number;
}

export function listDeleted(
  context: Context,
  query: PageQuery,
  { folder, path, recursive, name, asOf: shown }: DeletedScope,
): Promise<Page<ListedNode>> {
  const { store } = context;
  const prunedAt = store.prepare<number>("SELECT pruned_at FROM workspace WHERE id = ?").pluck();
  return pageOfList(context.lists, query, {
    key: ["deleted", folder.id, recursive, name ?? null],
    fields: Object.keys(FIELDS) as Field[],
    fallback: "name",
    asOf: shown,
    // Pruning is not a change.
    changedAt: (asOf) => `${lastChangeOf(store, folder.workspace, asOf)} ${prunedAt.get(folder.workspace)}`,
    *rows(field, asOf) {
      const pathOf = pathsBelow(store, folder.id, path, asOf);
      const next = store.prepare<DeletedRow>(
        `SELECT c.position AS row, c.node AS id, c.parent, c.name, ${FIELDS[field]} AS value, ${IS_DELETED} AS isListed
         FROM change c INDEXED BY ${recursive ? "change_deleted" : "change_deleted_from"}
         LEFT JOIN node n ON n.id = c.node LEFT JOIN version v ON v.id = c.head
         WHERE c.kind = 'deleted' AND c.activity = 0 AND ${recursive ? "c.workspace" : "c.parent"} = :from
           AND c.position > :after AND c.position <= :asOf ORDER BY c.position LIMIT ${BATCH}`,
      );
      const from = recursive ? folder.workspace : folder.id;
      for (const batch of inBatches(
        BATCH,
        0,
        (after) => next.all({ from, after, asOf }),
        ({ row }) => row,
      )) {
        yield batch.flatMap((row) => {
          const above =
            row.isListed !== 1 || (name !== undefined && row.name !== name) ? undefined : pathOf(row.parent);
          if (above === undefined) return [];
          return [field === "path" ? { ...row, value: joinPath(above, row.name) } : row];
        });
      }
    },
    show(rows, asOf) {
      const pathOf = pathsBelow(store, folder.id, path, asOf);
      return store
        .prepare<NodeRow & { deletedAt: number; by: string | null }>(
          `SELECT n.id, n.workspace, n.kind, n.created_at AS createdAt, n.provisioned, n.versions, c.position, c.revision,
                  c.parent, c.name, c.head, c.attributes, c.key, c.deleted, v.mime_type AS mimeType, v.size, v.hash,
                  v.created_at AS headTime, c.time AS deletedAt, c.by
           FROM json_each(?) j CROSS JOIN change c ON c.position = j.value CROSS JOIN node n ON n.id = c.node
           LEFT JOIN version v ON v.id = c.head`,
        )
        .all(JSON.stringify(rows))
        .map((row) => ({
          ...showNode(
            { ...row, attributes: stateAt(store, row.id, row.position, row.attributes) },
            joinPath(pathOf(row.parent ?? "") ?? "/", row.name),
          ),
          deletedAt: new Date(row.deletedAt).toISOString(),
          deletedBy: shownAuthor(row.by),
        }));
    },
  });
}

/**
 * Paths of the folder and of folders below it, deleted ones too, as of a position. Undefined: the folder is elsewhere.
 */
function pathsBelow(store: Store, folder: string, path: string, asOf: number) {
  const known = new Map<string, string | undefined>([[folder, path]]);
  return (id: string): string | undefined => {
    const way: { readonly id: string; readonly name: string }[] = [];
    let at: string | null = id;
    while (at !== null && !known.has(at)) {
      const place = placeOf(store, at, asOf);
      way.push({ id: at, name: place?.name ?? "" });
      at = place?.parent ?? null;
    }
    let above = at === null ? undefined : known.get(at);
    for (const { id: below, name } of way.reverse()) {
      above = above === undefined ? undefined : joinPath(above, name);
      known.set(below, above);
    }
    return known.get(id);
  };
}
