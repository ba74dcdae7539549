/** Invariants of a mount's rows and files between any two steps. Reads only. */
import type { Connection } from "../../../src/metadata/database.ts";
import type { NodeRowId } from "../../../src/metadata/ids.ts";
import type { Process } from "./mount.ts";

/** Each finds the rows for which it does not hold. */
const RULES: readonly (readonly [rule: string, violations: string])[] = [
  [
    "every entry reaches the root",
    `WITH RECURSIVE reached(inode) AS (
       SELECT 1 UNION SELECT entry.inode FROM entry JOIN reached ON entry.parent = reached.inode WHERE entry.id <> 3)
     SELECT id, parent, name, inode FROM entry WHERE id <> 3 AND parent NOT IN (SELECT inode FROM reached)`,
  ],
  [
    "a folder has one name",
    `SELECT inode, count(*) AS names FROM entry JOIN inode ON inode.id = entry.inode
     WHERE inode.kind = 'folder' GROUP BY inode HAVING count(*) > 1`,
  ],
  [
    "entries are in folders",
    "SELECT entry.id, entry.name FROM entry JOIN inode ON inode.id = entry.parent WHERE inode.kind <> 'folder'",
  ],
  [
    "an entry has one node row",
    `SELECT entry.id, entry.name, count(node.id) AS rows FROM entry LEFT JOIN node ON node.entry = entry.id
     GROUP BY entry.id HAVING count(node.id) <> 1`,
  ],
  [
    "node row and inode are of one kind",
    `SELECT node.id, node.kind, inode.kind FROM node JOIN entry ON entry.id = node.entry
     JOIN inode ON inode.id = entry.inode WHERE (node.kind = 'folder') <> (inode.kind = 'folder')`,
  ],
  [
    "unborn is without base, born with",
    "SELECT id FROM node WHERE (node_id IS NULL) <> (base_revision IS NULL) OR (node_id IS NULL AND seen IS NOT NULL)",
  ],
  [
    "a row that lost its entry is a deletion to send, or one that was refused",
    `SELECT id, node_id FROM node WHERE entry IS NULL AND due IS NULL AND parked IS NULL
     AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.node = node.id AND state = 'open')`,
  ],
  [
    "attempts belong to node rows, and their generations are there",
    `SELECT id, node, generation FROM attempt WHERE node NOT IN (SELECT id FROM node)
     OR (generation IS NOT NULL AND generation NOT IN (SELECT id FROM generation))`,
  ],
  [
    "generations belong to inodes",
    `SELECT id, inode FROM generation WHERE inode NOT IN (SELECT id FROM inode)
     OR (lineage IS NOT NULL AND lineage NOT IN (SELECT lineage FROM live))`,
  ],
  ["cache files belong to kernel node ids", "SELECT lineage FROM live WHERE lineage NOT IN (SELECT id FROM lineage)"],
  ["kernel node ids belong to inodes", "SELECT id, inode FROM lineage WHERE inode NOT IN (SELECT id FROM inode)"],
  [
    "an inode's kernel node id is its own",
    `SELECT inode.id, inode.lineage FROM inode LEFT JOIN lineage ON lineage.id = inode.lineage
     WHERE lineage.inode IS NULL OR lineage.inode <> inode.id`,
  ],
  [
    "clean content has the version it is",
    "SELECT id FROM inode WHERE kind <> 'folder' AND content = 'clean' AND (origin_version IS NULL OR origin_node IS NULL)",
  ],
  [
    "no node is being deleted that another row's content is a version of",
    `SELECT node.node_id, other.id, inode.id FROM attempt JOIN node ON node.id = attempt.node
     JOIN inode ON inode.origin_node = node.node_id JOIN entry ON entry.inode = inode.id
     JOIN node other ON other.entry = entry.id AND other.id <> node.id
     WHERE attempt.state = 'open' AND json_extract(attempt.request, '$.do') = 'delete' AND inode.content <> 'dirty'
     AND (inode.hash IS NULL OR other.base_hash IS NOT inode.hash)`,
  ],
  [
    "a folder with names in it has a place in the order of use",
    `SELECT id, used FROM inode WHERE used IS NULL
     AND EXISTS (SELECT 1 FROM entry WHERE entry.parent = inode.id AND entry.id <> 3)`,
  ],
  [
    "an inode without a name waits to be removed",
    `SELECT id, kind FROM inode WHERE id <> 1 AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.inode = inode.id)
     AND id NOT IN (SELECT inode FROM nameless)`,
  ],
  [
    "a superseded kernel node id waits to be removed",
    `SELECT lineage.id FROM lineage JOIN inode ON inode.id = lineage.inode WHERE inode.lineage <> lineage.id
     AND lineage.id NOT IN (SELECT lineage FROM superseded)`,
  ],
  [
    "what cache files hold is added up",
    "SELECT bytes FROM held WHERE bytes <> (SELECT coalesce(sum(bytes), 0) FROM live)",
  ],
  ["references between tables hold", "PRAGMA foreign_key_check"],
];

const AT_REST = `SELECT id FROM node WHERE due IS NULL AND parked IS NULL
  AND NOT EXISTS (SELECT 1 FROM turn JOIN entry ON entry.inode = turn.inode WHERE entry.id = node.entry)
  AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.node = node.id AND state = 'open')`;

interface Prepared {
  readonly rules: readonly { rule: string; find: { all(): unknown[] } }[];
  readonly atRest: { all(): unknown[] };
  readonly changes: { get(): unknown };
  /** How many rows had been changed when the rules last held: they ask for nothing else. */
  heldAt: unknown;
}
const prepared = new WeakMap<Connection, Prepared>();

/** One line for each violation. */
export function violations({ database, engine }: Process): string[] {
  let known = prepared.get(database);
  if (known === undefined) {
    const rules = RULES.map(([rule, sql]) => ({ rule, find: database.prepare(sql) }));
    const changes = database.prepare("SELECT total_changes()").pluck();
    known = { rules, atRest: database.prepare(AT_REST).pluck(), changes, heldAt: undefined };
    prepared.set(database, known);
  }
  const changes = known.changes.get();
  const found = known.heldAt === changes ? [] : broken(known.rules);
  if (found.length === 0) known.heldAt = changes;
  return [...found, ...forgotten(engine.context, known.atRest.all() as NodeRowId[])];
}

const broken = (rules: Prepared["rules"]) =>
  rules.flatMap(({ rule, find }) => find.all().map((row) => `not so: ${rule}: ${JSON.stringify(row)}`));

/** A row nobody will look at again has nothing left to do. */
function forgotten(context: Process["engine"]["context"], ids: readonly NodeRowId[]): string[] {
  return ids.flatMap((id) => {
    const row = context.metadata.nodes.get(id);
    if (row === undefined) return [];
    const step = context.planner.step(row);
    // With a writer open nothing is due before its release or the next snapshot.
    const isAtRest = step.do === "nothing" || step.do === "snapshot" || (step.do === "wait" && step.for === "writer");
    return isAtRest ? [] : [`not so: what is to be done is due: node row ${id}: ${JSON.stringify(step)}`];
  });
}

/** Of files and rows, when nothing is under way: each file has its row, each row that says bytes are here its file. */
export function diskViolations({ database, files }: Process): string[] {
  const root = files.image().root.get("state");
  const namesIn = (kind: string) => {
    const folder = root instanceof Map ? root.get(kind) : undefined;
    const shards = folder instanceof Map ? [...folder.values()] : [];
    return new Set(shards.flatMap((shard) => (shard instanceof Map ? [...shard.keys()].map(Number) : [])));
  };
  const known = (sql: string) => new Set(database.prepare(sql).pluck().all() as number[]);
  const lacking = (a: Set<number>, b: Set<number>) => [...a].filter((id) => !b.has(id));
  const lives = namesIn("live");
  const snapshots = namesIn("generation");
  const wantedSnapshots = known("SELECT id FROM generation WHERE lineage IS NULL");
  return [
    ...lacking(lives, known("SELECT lineage FROM live")).map((id) => `cache file ${id} has no row`),
    ...lacking(known("SELECT lineage FROM live WHERE bytes > 0"), lives).map((id) => `live row ${id} has no file`),
    ...lacking(snapshots, wantedSnapshots).map((id) => `the file of generation ${id} has no row`),
    ...lacking(wantedSnapshots, snapshots).map((id) => `generation ${id} has no file`),
  ];
}
