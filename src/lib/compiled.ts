/** Where the compiled parts of `native/` are; nothing of what they do. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The package's root: the same from src/ and from dist/, however deep the file that holds this is. */
function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) throw new Error(`No package.json above ${start}: the installation is incomplete.`);
  }
}

/** The path of a compiled part. Throws, and says what to do, when it has not been built. */
export function compiled(name: string): string {
  const path = join(packageRoot(), "native", "build", "Release", name);
  if (!existsSync(path)) throw new Error(`${path} is missing; run \`npm run build\`.`);
  return path;
}

/** The path of the supervisor program. Throws when it has not been built. */
export function supervisorProgram(): string {
  return compiled("wsfs-supervisor");
}
