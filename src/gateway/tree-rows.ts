/**
 * Many new nodes at once, within one transaction. The rows are the same as `createNodeRow` makes one by one, but made a
 * table at a time from a temporary table, which takes a fraction of the time.
 */
import type { Attributes } from "../contract/attributes.ts";
import type { Change, Content } from "./changes.ts";
import type { Context } from "./context.ts";
import { lastChange } from "./lag.ts";
import { MAIN } from "./node-rows.ts";
import { beginPlace, countBegun, isBig } from "./places.ts";
import { requireQuota } from "./quota.ts";

export interface NewTreeRow {
  readonly id: string;
  readonly kind: "file" | "folder";
  /** A folder that exists, or one of the rows before this one. */
  readonly parent: string;
  readonly name: string;
  readonly attributes: Attributes;
  /** Id of its first version; null for a folder. */
  readonly head: string | null;
  readonly content: Content | undefined;
}

const TREE = `CREATE TEMP TABLE IF NOT EXISTS tree (
  position INTEGER PRIMARY KEY, id TEXT, kind TEXT, parent TEXT, name TEXT, attributes TEXT, head TEXT,
  content INTEGER, size INTEGER, hash TEXT, mime_type TEXT, placed INTEGER, bulk INTEGER)`;

/**
 * The way in which nodes come in below a root that does not exist yet: they are not found, and the journal reports them
 * later.
 */
interface Staged {
  readonly root: string;
  readonly journaled: boolean;
}

/** Returns the position of the last node. A folder comes before its content. */
export function createTreeRows(
  context: Pick<Context, "store" | "options" | "withNews">,
  change: Change,
  workspace: string,
  rows: readonly NewTreeRow[],
  staged?: Staged,
): number {
  const { store, withNews } = context;
  const { position: before } = lastChange(store);
  const entry = staged === undefined ? countIn(context, change, workspace, rows) : null;
  if (entry !== null) withNews.add(workspace);
  const isJournaled = staged?.journaled ?? change.journaled;
  const placed = (row: NewTreeRow) => row.kind === "file" || isJournaled;
  /** Places in these folders are counted at once, not one by one. */
  const counts = new Map<string, number>();
  for (const row of rows) if (placed(row)) counts.set(row.parent, (counts.get(row.parent) ?? 0) + 1);
  for (const folder of [...counts.keys()]) if (isBig(store, folder)) counts.delete(folder);
  store.database.exec(TREE);
  store.prepare("DELETE FROM temp.tree").run();
  const add = store.prepare("INSERT INTO temp.tree VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const [index, row] of rows.entries()) {
    add.run(
      before + index + 1,
      row.id,
      row.kind,
      row.parent,
      row.name,
      JSON.stringify(row.attributes),
      row.head,
      row.content?.content ?? null,
      row.content?.size ?? null,
      row.content?.hash ?? null,
      row.content?.mimeType ?? null,
      Number(placed(row)),
      Number(counts.has(row.parent)),
    );
  }
  store
    .prepare(
      `INSERT INTO change (position, time, workspace, node, kind, activity, entry, revision, parent, name, head,
                           attributes, deleted, key, branch, branch_head, by)
       SELECT position, :time, :workspace, id, 'created', 0, :entry + position - :before, 1, parent, name,
              head, attributes, 0, :key, iif(head IS NULL, NULL, '${MAIN}'), head, :by
       FROM temp.tree ORDER BY position`,
    )
    .run({ time: change.time, workspace, entry, before, key: change.key, by: change.by });
  store
    .prepare(
      `INSERT INTO node (id, workspace, kind, parent, name, deleted, provisioned, position, versions, created_at,
                         revision, head, attributes, key, mime_type, size, hash, head_time)
       SELECT id, :workspace, kind, parent, name, 0, placed, position, iif(head IS NULL, 0, 1),
              :time, 1, head, attributes, :key, mime_type, size, hash, iif(head IS NULL, NULL, :time)
       FROM temp.tree ORDER BY position`,
    )
    .run({ time: change.time, workspace, key: change.key });
  store
    .prepare(
      `INSERT INTO version (id, node, number, branch, position, content, size, hash, mime_type, created_at)
       SELECT head, id, 1, '${MAIN}', position, content, size, hash, mime_type, ?
       FROM temp.tree WHERE head IS NOT NULL ORDER BY position`,
    )
    .run(change.time);
  store
    .prepare(
      `INSERT INTO place (parent, name, node, since, created_at)
       SELECT parent, name, id, position, ? FROM temp.tree WHERE bulk = 1 AND placed = 1 ORDER BY position`,
    )
    .run(change.time);
  if (staged !== undefined) {
    store.prepare("INSERT INTO copied (node, root, position) SELECT id, ?, position FROM temp.tree").run(staged.root);
  }
  store.prepare("DELETE FROM temp.tree").run();
  for (const [index, row] of rows.entries()) {
    if (!placed(row) || counts.has(row.parent)) continue;
    beginPlace(store, row.parent, { name: row.name, node: row.id, createdAt: change.time }, before + index + 1);
  }
  countBegun(store, counts);
  return before + rows.length;
}

/**
 * Adds the nodes to the counts of the workspace. Returns the number of the entry before theirs; null when there are
 * none.
 */
function countIn(
  context: Pick<Context, "store" | "options">,
  { journaled }: Change,
  workspace: string,
  rows: readonly NewTreeRow[],
): number | null {
  const size = rows.reduce((sum, { content }) => sum + (content?.size ?? 0), 0);
  requireQuota(context, workspace, size);
  const counted = context.store
    .prepare<{ entries: number }>(
      "UPDATE workspace SET entries = entries + ?, used = used + ? WHERE id = ? RETURNING entries",
    )
    .get(journaled ? rows.length : 0, size, workspace);
  if (counted === undefined) throw new Error(`Workspace ${workspace} is gone.`);
  return journaled ? counted.entries - rows.length : null;
}
