/**
 * Loads the addon. It knows no function of the addon; `fuse/native.ts` and `content/system-calls.ts` give it its types.
 */
import { createRequire } from "node:module";
import { compiled } from "./compiled.ts";

export { supervisorProgram } from "./compiled.ts";

/** The addon. Throws an Error with advice when it cannot be loaded or lacks one of the functions `names`. */
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
