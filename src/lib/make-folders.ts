/** mkdir -p. Node's own tries for ever when a file system refuses new folders with ENOENT, as /proc does. */
import { mkdirSync, rmdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes the folder at the absolute path, and missing ones above it, with this mode minus the umask. Returns the folders
 * it made, the highest first. Throws a system error.
 */
export function makeFolders(path: string, mode = 0o777): string[] {
  const missing: string[] = [];
  let folder = path;
  while (folder !== dirname(folder) && statSync(folder, { throwIfNoEntry: false }) === undefined) {
    missing.push(folder);
    folder = dirname(folder);
  }
  const made: string[] = [];
  for (const next of missing.reverse()) {
    try {
      mkdirSync(next, { mode });
      made.push(next);
    } catch (error) {
      // Another process was faster.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !statSync(next).isDirectory()) throw error;
    }
  }
  return made;
}

/** Removes the folders that `makeFolders` made, as far as they are empty. */
export function unmakeFolders(made: readonly string[]): void {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // The folder is in use, or another process was faster.
      return;
    }
  }
}
