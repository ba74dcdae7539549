/**
 * Many nodes as JSON, as of a position: made by the database where a node has not changed since,
 * which is far cheaper than a thousand objects made here.
 */
import { joinPath } from "../contract/names.ts";
import { MAIN, nodeAt, onBranch, pathOf, showNode } from "./node-rows.ts";
import type { Store } from "./store.ts";

/** How nodes are named: by the number of their row, which is good as long as the store is open, or by id. */
export type NodeRefs =
  | { readonly by: "row"; readonly refs: readonly number[] }
  | { readonly by: "id"; readonly refs: readonly string[] };

interface Fragment {
  /** Null where `rest` says it. */
  readonly id: string | null;
  /** Null where it is the folder most are in. */
  readonly parent: string | null;
  readonly name: string;
  readonly createdAt: number;
  readonly headTime: number | null;
  readonly attributes: string;
  /** Null where the state of the position is not the latest. */
  readonly rest: string | null;
}

/** `folder`: where most or all of them are. */
export function nodesAsJson(
  store: Store,
  nodes: NodeRefs,
  folder: string,
  asOf: number,
  branch: string | undefined,
): string {
  const isMain = branch === undefined || branch === MAIN;
  const key = nodes.by === "row" ? "n.rowid" : "n.id";
  const fragments = store
    .prepare<Fragment>(
      `SELECT iif(n.position <= :asOf AND :main, NULL, n.id) AS id, nullif(n.parent, :folder) AS parent, n.name, n.created_at AS createdAt, n.head_time AS headTime, n.attributes,
              iif(n.position <= :asOf, json_object('id', n.id, 'kind', n.kind, 'name', n.name,
                'parentId', n.parent, 'mimeType', n.mime_type, 'size', ifnull(n.size, 0), 'head', n.head,
                'contentHash', n.hash, 'lastKey', n.key, 'revision', n.revision), NULL) AS rest
       FROM json_each(:refs) j CROSS JOIN node n ON ${key} = j.value`,
    )
    .all({ asOf, folder, main: Number(isMain), refs: JSON.stringify(nodes.refs) });
  const pathOfFolder = rememberPaths(store, asOf);
  const moment = rememberMoments();
  const items = fragments.map(({ id, parent, name, createdAt, headTime, attributes, rest }) => {
    if (rest === null || id !== null) {
      const row = id === null ? undefined : nodeAt(store, id, asOf);
      if (row === undefined) throw new Error(`Node ${id} was not there at ${asOf}.`);
      const path = row.parent === null ? "/" : joinPath(pathOfFolder(row.parent), row.name);
      return JSON.stringify(showNode(onBranch(store, row, branch, asOf), path));
    }
    const path = JSON.stringify(joinPath(pathOfFolder(parent ?? folder), name));
    const times = `"createdAt":"${moment(createdAt)}","modifiedAt":"${moment(headTime ?? createdAt)}"`;
    return `${rest.slice(0, -1)},"path":${path},${times},"attributes":${attributes}}`;
  });
  return `[${items.join(",")}]`;
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

/** Nodes made by one request have one time. */
function rememberMoments(): (time: number) => string {
  let last: number | undefined;
  let text = "";
  return (time) => {
    if (time !== last) {
      last = time;
      text = new Date(time).toISOString();
    }
    return text;
  };
}
