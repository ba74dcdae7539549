/**
 * Many nodes as JSON, as of a position. The database makes the JSON of a node that has not changed since, as one text
 * for each node. That is several times cheaper than a thousand objects made here.
 */
import { joinPath } from "../contract/names.ts";
import { MAIN, nodeAt, onBranch, pathOf, showNode } from "./node-rows.ts";
import type { Store } from "./store.ts";

/** References to nodes: by the number of their row, which is valid as long as the store is open, or by id. */
type NodeRefs =
  | { readonly by: "row"; readonly refs: readonly number[] }
  | { readonly by: "id"; readonly refs: readonly string[] };

const moment = (column: string) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`;

/**
 * The JSON of the latest state of a node `n`. Most nodes have the same createdAt and modifiedAt. That time is formatted
 * once, because formatting it costs more than any other part of a node.
 */
const nodeJson = (path: string) =>
  `(SELECT json_object('id', n.id, 'kind', n.kind, 'path', ${path}, 'name', n.name,
    'parentId', n.parent, 'mimeType', n.mime_type, 'size', ifnull(n.size, 0), 'head', n.head, 'contentHash', n.hash,
    'lastKey', n.key, 'revision', n.revision, 'createdAt', t.created,
    'modifiedAt', iif(ifnull(n.head_time, n.created_at) = n.created_at, t.created, ${moment("n.head_time")}),
    'attributes', json(n.attributes))
  FROM (SELECT ${moment("n.created_at")} AS created LIMIT 1) t)`;

/** A child of a folder as of a position, and its JSON. */
export interface ShownChild {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly json: string;
}

/**
 * The children whose names follow `after`, of a folder that has not lost any since the position; on the branch main.
 * One statement finds them and makes their JSON.
 */
export function presentChildren(
  store: Store,
  folder: { readonly id: string; readonly path: string },
  after: string,
  asOf: number,
  limit: number,
): readonly ShownChild[] {
  const rows = store
    .prepare<[id: string, kind: string, name: string, json: string | null]>(
      `SELECT n.id, n.kind, p.name, iif(n.position > :asOf, NULL, ${nodeJson(":prefix || n.name")})
       FROM place p CROSS JOIN node n ON n.id = p.node
       WHERE p.parent = :folder AND p.name > :after AND p.since <= :asOf ORDER BY p.name LIMIT +:limit`,
    )
    .raw()
    .all({ folder: folder.id, prefix: joinPath(folder.path, ""), after, asOf, limit });
  return rows.map(([id, kind, name, json]) => ({
    ...{ id, kind, name },
    json: json ?? nodeJsonAt(store, id, joinPath(folder.path, name), asOf, undefined),
  }));
}

function nodeJsonAt(store: Store, id: string, path: string, asOf: number, branch: string | undefined): string {
  const row = nodeAt(store, id, asOf);
  if (row === undefined) throw new Error(`Node ${id} was not there at ${asOf}.`);
  return JSON.stringify(showNode(onBranch(store, row, branch, asOf), path));
}

/** `folder`: the parent of all nodes; undefined: they may be anywhere. */
export function nodesAsJson(
  store: Store,
  nodes: NodeRefs,
  folder: string | undefined,
  asOf: number,
  branch: string | undefined,
): readonly string[] {
  const refs = JSON.stringify(nodes.refs);
  const named = `json_each(:refs) j CROSS JOIN node n ON ${nodes.by === "row" ? "n.rowid" : "n.id"} = j.value`;
  const pathOfFolder = rememberPaths(store, asOf);
  const folders =
    folder === undefined
      ? store.prepare<string>(`SELECT DISTINCT n.parent FROM ${named}`).pluck().all({ refs })
      : [folder];
  const prefixes = Object.fromEntries(folders.map((id) => [id, joinPath(pathOfFolder(id), "")]));
  // An id stands for a node that has another state now, or another content on the branch.
  const texts = store
    .prepare<string>(
      `SELECT iif(n.position > :asOf OR :other, n.id, ${nodeJson("(:prefixes ->> n.parent) || n.name")}) FROM ${named}`,
    )
    .pluck()
    .all({ refs, asOf, prefixes: JSON.stringify(prefixes), other: Number(branch !== undefined && branch !== MAIN) });
  return texts.map((text) => {
    if (text.startsWith("{")) return text;
    const row = nodeAt(store, text, asOf);
    if (row === undefined) throw new Error(`Node ${text} was not there at ${asOf}.`);
    const path = row.parent === null ? "/" : joinPath(pathOfFolder(row.parent), row.name);
    return JSON.stringify(showNode(onBranch(store, row, branch, asOf), path));
  });
}

function rememberPaths(store: Store, asOf: number): (folder: string) => string {
  const known = new Map<string, string>();
  return (folder) => {
    let path = known.get(folder);
    if (path === undefined) {
      const row = nodeAt(store, folder, asOf);
      path = row === undefined ? "/" : pathOf(store, row, asOf);
      known.set(folder, path);
    }
    return path;
  };
}
