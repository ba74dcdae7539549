/** Queries of a mount's rows, for tests that look at more than the engine's interface shows. Reads only. */
import type { Attributes } from "../../../src/contract/attributes.ts";
import type { Connection } from "../../../src/metadata/database.ts";

const ROOT = 1;

interface InodeRow {
  readonly id: number;
  readonly kernelNodeId: number;
  readonly content: "clean" | "open" | "dirty";
  readonly originNode: string | null;
  readonly originVersion: string | null;
}

interface NodeRow {
  readonly id: number;
  /** Null: it is being deleted, or its deletion is refused. */
  readonly entry: number | null;
  /** Null: the gateway does not have it yet. */
  readonly nodeId: string | null;
  readonly baseName: string | null;
}

const INODE = "inode.id, lineage AS kernelNodeId, content, origin_node AS originNode, origin_version AS originVersion";
const NODE = "node.id, node.entry, node_id AS nodeId, base_name AS baseName";

export function rowsOf(database: Connection) {
  const get = <Row>(sql: string, ...values: unknown[]) => database.prepare(sql).get(...values) as Row | undefined;
  const all = <Row>(sql: string, ...values: unknown[]) => database.prepare(sql).all(...values) as Row[];
  const number = (sql: string, ...values: unknown[]) =>
    Number(
      database
        .prepare(sql)
        .pluck()
        .get(...values) ?? 0,
    );
  const setting = (key: string) =>
    database.prepare("SELECT value FROM setting WHERE key = ?").pluck().get(key) as string | undefined;
  return {
    /** The journal position up to which everything is applied. */
    cursor: () => Number(setting("cursor") ?? 0),
    /** The position that the gateway's lists have shown. */
    indexed: () => Number(setting("indexed") ?? 0),
    /** The position of the newest acknowledged write of this mount. */
    written: () => Number(setting("written") ?? 0),
    /** The file, folder or symlink of a name. */
    inode: (name: string, folder = ROOT) =>
      get<InodeRow>(
        `SELECT ${INODE} FROM entry JOIN inode ON inode.id = entry.inode WHERE entry.parent = ? AND entry.name = ?`,
        folder,
        name,
      ),
    inodeOfKernelNodeId: (kernelNodeId: number) =>
      get<InodeRow>(`SELECT ${INODE} FROM inode WHERE id = (SELECT inode FROM lineage WHERE id = ?)`, kernelNodeId),
    hasInode: (id: number) => number("SELECT count(*) FROM inode WHERE id = ?", id) > 0,
    /** The row of the node that a name has. */
    node: (name: string, folder = ROOT) =>
      get<NodeRow>(
        `SELECT ${NODE} FROM entry JOIN node ON node.entry = entry.id WHERE entry.parent = ? AND entry.name = ?`,
        folder,
        name,
      ),
    nodeOfId: (nodeId: string) => get<NodeRow>(`SELECT ${NODE} FROM node WHERE node_id = ?`, nodeId),
    /** Nodes whose last state the gateway does not have yet, those that have waited longest first. */
    dirtyNodes: () => all<NodeRow>(`SELECT ${NODE} FROM node WHERE dirty_since IS NOT NULL ORDER BY dirty_since, id`),
    /** Requests that are rows and whose answer is not known: the names they want. */
    openRequests: () => all<{ name: string | null }>("SELECT name FROM attempt WHERE state = 'open'"),
    /** The deletion of a node that lists and journal may not have passed yet. Position null: the journal has yet to tell of it. */
    tombstone: (nodeId: string) =>
      get<{ position: number | null }>("SELECT position FROM tombstone WHERE node_id = ?", nodeId),
    tombstones: () => number("SELECT count(*) FROM tombstone"),
    /** Nodes to be read again. Since when their id answers 404, or null. */
    rereads: () =>
      all<{ nodeId: string; missingSince: number | null }>(
        "SELECT node_id AS nodeId, missing_since AS missingSince FROM reread ORDER BY id",
      ),
    /** How many folders are to be listed again. */
    relists: () => number("SELECT count(*) FROM relist"),
    /** How many nodes wait for their name. */
    arrivals: () => number("SELECT count(*) FROM arrival"),
    /** Files whose bytes are taken to be nobody else's. */
    unclean: () =>
      all<{ id: number; name: string | null; content: string; hash: string | null }>(
        `SELECT inode.id, min(entry.name) AS name, content, hash FROM inode LEFT JOIN entry ON entry.inode = inode.id
         WHERE content <> 'clean' AND kind = 'file' GROUP BY inode.id`,
      ),
    /** When something that is no change of its own is looked at next. */
    nextLook: () =>
      database
        .prepare("SELECT coalesce((SELECT min(due) FROM node WHERE due IS NOT NULL), (SELECT min(ends_at) FROM turn))")
        .pluck()
        .get() as number | null,
    /** How many files with several names are yet to be brought up or looked at again. */
    linkLeases: () => number("SELECT count(*) FROM turn"),
    nameless: () => number("SELECT count(*) FROM nameless"),
    superseded: () => number("SELECT count(*) FROM superseded"),
    liveFiles: () => number("SELECT count(*) FROM live"),
    attributes: (inode: number) =>
      JSON.parse(
        (database.prepare("SELECT attributes FROM inode WHERE id = ?").pluck().get(inode) ?? "{}") as string,
      ) as Attributes,
  };
}

export type SimRows = ReturnType<typeof rowsOf>;
