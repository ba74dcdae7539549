/** Finds the compiled parts of `native/`. It does not know their purpose. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of package.json, above this file. It is the same from src/ and from dist/. */
function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) throw new Error(`No package.json above ${start}: the installation is incomplete.`);
  }
}

/**
 * The path of a compiled part: a clone's own build, otherwise the prebuilt one in the package. Throws an Error with
 * advice when there is neither.
 */
export function compiled(name: string): string {
  const native = join(packageRoot(), "native");
  const built = join(native, "build", "Release", name);
  if (existsSync(built)) return built;
  const machine = `${process.platform}-${process.arch}`;
  const brought = join(native, "prebuilds", machine, name);
  if (existsSync(brought)) return brought;
  if (!existsSync(join(native, "prebuilds"))) throw new Error(`${built} is missing; run \`npm run build\`.`);
  throw new Error(`The package wsfs has no build for this machine (${machine}); a clone of its repository makes one.`);
}

/** The path of the supervisor program. Throws as `compiled` does. */
export function supervisorProgram(): string {
  return compiled("wsfs-supervisor");
}
