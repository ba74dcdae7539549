/**
 * Lets plain node run the project's TypeScript files where they lie, for what is neither compiled
 * nor run by vitest (benchmarks, child processes of tests):
 *
 *   node --import ./scripts/typescript.mjs FILE.ts
 *
 * Types are removed by rolldown, which vitest brings; nothing is checked.
 */
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

// The same file is both: what registers, and (in the thread node keeps for it) the hook itself.
if (isMainThread) register(import.meta.url);

let transformSync;

export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context);
  transformSync ??= (await import("rolldown/utils")).transformSync;
  const path = fileURLToPath(url);
  const { code, map, errors } = transformSync(path, readFileSync(path, "utf8"), { sourcemap: true });
  if (errors.length > 0) throw new SyntaxError(`${path}: ${errors.map(({ message }) => message).join("; ")}`);
  const sourceMap = Buffer.from(JSON.stringify(map)).toString("base64");
  const source = `${code}\n//# sourceMappingURL=data:application/json;base64,${sourceMap}\n`;
  return { format: "module", source, shortCircuit: true };
}
