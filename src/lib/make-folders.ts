/** mkdir -p. Node's own tries for ever where a file system refuses new folders with ENOENT, as /proc does. */
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Makes the folder at the absolute path, and those above it, with this mode less the umask. Throws a system error. */
export function makeFolders(path: string, mode = 0o777): void {
  const missing: string[] = [];
  let folder = path;
  while (folder !== dirname(folder) && statSync(folder, { throwIfNoEntry: false }) === undefined) {
    missing.push(folder);
    folder = dirname(folder);
  }
  for (const next of missing.reverse()) {
    try {
      mkdirSync(next, { mode });
    } catch (error) {
      // Another process was faster.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !statSync(next).isDirectory()) throw error;
    }
  }
}
