/**
 * Has every database that this process opens from now on be its own alone, and each commit be one write:
 * `native/commit-log`, which says why. Knows of no database.
 */
import { compiled } from "../lib/compiled.ts";
import { openSqlite } from "../lib/sqlite/index.ts";

let isLoaded = false;

/** For the whole process, its threads included. Throws, and says what to do, when it has not been built. */
export function loadCommitLog(): void {
  if (isLoaded) return;
  const database = openSqlite(":memory:");
  try {
    database.loadExtension(compiled("wsfs-commit-log.so"));
  } finally {
    database.close();
  }
  isLoaded = true;
}
