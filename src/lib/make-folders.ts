/** mkdir -p. Node's own tries for ever where a file system refuses new folders with ENOENT, as /proc does. */
import { mkdirSync, rmdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes the folder at the absolute path, and those above it, with this mode less the umask. Answers those it made, the highest
 * first. Throws a system error.
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

/** Takes back what `makeFolders` made, as far as nothing lies in it. */
export function unmakeFolders(made: readonly string[]): void {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Somebody uses it, or was faster.
      return;
    }
  }
}
