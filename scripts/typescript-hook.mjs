/**
 * The hook that typescript.mjs registers. Node runs it in a thread of its own.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { transformSync } from "rolldown/utils";

export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context);
  const path = fileURLToPath(url);
  const { code, map, errors } = transformSync(path, readFileSync(path, "utf8"), { sourcemap: true });
  if (errors.length > 0) throw new SyntaxError(`${path}: ${errors.map(({ message }) => message).join("; ")}`);
  const sourceMap = Buffer.from(JSON.stringify(map)).toString("base64");
  const source = `${code}\n//# sourceMappingURL=data:application/json;base64,${sourceMap}\n`;
  return { format: "module", source, shortCircuit: true };
}
