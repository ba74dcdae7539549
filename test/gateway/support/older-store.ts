/** Takes from a store what later migrations add and could not add twice, as for a store of an older program. */
import type { Connection } from "../../../src/lib/sqlite/index.ts";

const INDICES = [
  "change_account",
  "change_mount",
  "change_mount_account",
  "node_past",
  "version_content",
  "version_thinned",
];
const COLUMNS = [
  ["change", "by"],
  ["workspace", "policy"],
  ["workspace", "pruned_at"],
  ["node", "purged"],
] as const;

export function forgetColumns(database: Connection): void {
  for (const index of INDICES) database.exec(`DROP INDEX ${index}`);
  for (const [table, column] of COLUMNS) database.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
}
