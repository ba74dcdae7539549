/**
 * Where the compiled parts of `native/` are. It knows their places and nothing of what they do;
 * `fuse/native.ts` and `content/system-calls.ts` give the addon its types.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
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

function compiled(name: string): string {
  const path = join(packageRoot(), "native", "build", "Release", name);
  if (!existsSync(path)) throw new Error(`${path} is missing; run \`npm run build\`.`);
  return path;
}

/** The path of the supervisor program. Throws when it has not been built. */
export function supervisorProgram(): string {
  return compiled("wsfs-supervisor");
}

/** The addon's functions, each checked to be there. Throws an error that says what to do. */
export function loadAddon(names: readonly string[]): unknown {
  const path = compiled("wsfs.node");
  let addon: unknown;
  try {
    addon = createRequire(import.meta.url)(path);
  } catch (cause) {
    throw new Error(`${path} cannot be loaded; run \`npm run build\` with this Node (${process.version}).`, { cause });
  }
  const functions = new Map(Object.entries(Object(addon)));
  const missing = names.filter((name) => typeof functions.get(name) !== "function");
  if (missing.length > 0) {
    throw new Error(`${path} is of another version (no ${missing.join(", ")}); run \`npm run build\`.`);
  }
  return addon;
}
