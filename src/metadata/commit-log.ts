/**
 * Makes every database that this process opens from now on belong to this process alone, and each commit one write.
 * `native/commit-log` says why. This file knows no database.
 */
import { compiled } from "../lib/compiled.ts";
import { openSqlite } from "../lib/sqlite/index.ts";

let isLoaded = false;

/**
 * Takes effect for the whole process, its threads included. Throws an Error that says what to do when the extension has
 * not been built.
 */
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
