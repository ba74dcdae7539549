/** Single values of the state dir, and the arrivals (nodes that wait for their name). */
import type { Node } from "../contract/resources.ts";
import { type Connection, prepare, remember, rememberAny } from "./database.ts";

type SettingKey =
  /** Id of the workspace. */
  | "workspace"
  | "workspaceName"
  /** Node id of the root. */
  | "root"
  /** The part or moment of the workspace that is shown, see engine/start/view.ts. Absent: all of it, at present. */
  | "view"
  /** Journal position up to which everything is applied. Absent: nothing is. */
  | "cursor"
  /** The last journal entry that was applied, see engine/core/timeline.ts. */
  | "followed"
  /** The change that the gateway acknowledged last, see engine/core/timeline.ts. */
  | "acknowledged"
  /** Id of the machine's boot in which the mount last started. Absent: it ended with all of its bytes synced. */
  | "boot"
  /** Index watermark: the position up to which the path index shows everything. Absent or 0: it may show nothing yet. */
  | "indexed"
  /** Position of our newest acknowledged write. Absent or 0: there is none whose position is known. */
  | "written"
  /** The owners that are shown, see daemon/choose-owners.ts. Absent: mine. */
  | "owners"
  /** The origin of the revisions and positions in the rows: the profile's counting. */
  | "counting"
  /** Id of the mount to which the request log belongs. */
  | "mount"
  /** Id of the `wsfs reload` that last changed a database of an earlier release. */
  | "migrated"
  /** The reason why the rows are older than the files. Absent once they are repaired. */
  | "restored"
  /** Row time, see engine/host/row-clock.ts. */
  | "time"
  | "latest"
  /** Gaps in which row time stood still, see engine/host/clock-gaps.ts. */
  | "pauses";

/** The text of a value that was cleared: its row stays. */
const ABSENT = "";

const decode = (row: { readonly value: string } | undefined): string | undefined =>
  row === undefined || row.value === ABSENT ? undefined : row.value;

export function createSettings(database: Connection) {
  const byKey = prepare<{ value: string }>(database, "SELECT value FROM setting WHERE key = ?");
  const put = prepare(database, "INSERT OR REPLACE INTO setting (key, value) VALUES (?, ?)", []);
  const get = remember(database, ["setting"], (key: SettingKey) => decode(byKey.get(key)));
  return {
    get: (key: SettingKey): string | undefined => get(key),
    set(key: SettingKey, value: string): void {
      put.run(key, value);
      get.tell(key, value);
    },
    /** Makes the value absent. */
    clear(key: SettingKey): void {
      put.run(key, ABSENT);
      get.tell(key, undefined);
    },
    /**
     * An absent value counts as 0. For a journal position this is the true beginning, before the first change: nothing
     * is applied or shown up to it, and everything that is written up to it is shown.
     */
    getNumber: (key: SettingKey): number => Number(get(key) ?? 0),
  };
}

export function createArrivals(database: Connection) {
  const insert = prepare(
    database,
    "INSERT OR REPLACE INTO arrival (node_id, parent, name, node) VALUES (@nodeId, @parent, @name, @node)",
  );
  const byId = prepare<{ node: string }>(database, "SELECT node FROM arrival WHERE node_id = ?");
  const all = prepare<{ node: string }>(
    database,
    "SELECT node FROM arrival WHERE node_id > ? ORDER BY node_id LIMIT +?",
  );
  const remove = prepare(database, "DELETE FROM arrival WHERE node_id = ?");
  const count = prepare<{ count: number }>(database, "SELECT count(*) AS count FROM arrival");
  const one = prepare<{ one: number }>(database, "SELECT 1 AS one FROM arrival WHERE parent = ? LIMIT 1");
  const inFolder = prepare<{ id: string }>(database, "SELECT node_id AS id FROM arrival WHERE parent = ?");
  const isAny = rememberAny(database, "arrival");
  return {
    get(nodeId: string): Node | undefined {
      const row = isAny() ? byId.get(nodeId) : undefined;
      return row === undefined ? undefined : (JSON.parse(row.node) as Node);
    },
    add(node: Node): void {
      insert.run({ nodeId: node.id, parent: node.parentId, name: node.name, node: JSON.stringify(node) });
    },
    remove(nodeId: string): void {
      remove.run(nodeId);
    },
    /** In order of node id, after the given one; undefined: from the first. */
    list: (after: string | undefined, limit: number): Node[] =>
      isAny() ? all.all(after ?? "", limit).map((row) => JSON.parse(row.node) as Node) : [],
    count: (): number => count.get()?.count ?? 0,
    /** Node ids of the arrivals whose place is in the folder. `parent`: node id. */
    idsIn: (parent: string): string[] => inFolder.all(parent).map(({ id }) => id),
    isAnyIn: (parent: string): boolean => isAny() && one.get(parent) !== undefined,
  };
}
