/**
 * Turns programs into scripts: V8 can keep the compiled code of a script, and Node 20 cannot pass that for a module. So
 * a large module becomes two files. The script has the module's code as one function. The new module has the same
 * imports and exports and calls the function. src/lib/code-cache.ts loads the script.
 *
 *   node scripts/code-cache.mjs DIST MODULE ...
 *
 * loads these modules, and writes the compiled code of each beside its script.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const LOADER = "lib/code-cache.js";
const MAIN = "cli/main.js";
/** Imports as the bundler writes them: each on a line of its own. */
const IMPORT = /^import (?:(?<whole>[\w$]+|\* as [\w$]+)(?:, )?)?(?:\{(?<named>[^}]*)\})?(?: from )?"(?<from>[^"]+)";$/;
const EXPORT = /^export \{([^}]*)\};$/m;
const SOURCE_MAP = /^\/\/# sourceMappingURL=.*$/m;
/** Code that is not in the forms above, or that has another meaning in a script. */
const UNKNOWN = /^(?:import|export) .*|\bimport(?:Meta|Module)\b/m;

/** Splits the module in two, the script beside it. Each line of the script is that of the module, for its source map. */
export function splitScript(dist, module) {
  const path = join(dist, module);
  const script = path.replace(/\.js$/, ".cjs");
  const lines = readFileSync(path, "utf8").split("\n");
  const imports = [];
  const given = [];
  let last = -1;
  for (const [index, line] of lines.entries()) {
    const groups = IMPORT.exec(line)?.groups;
    if (groups === undefined) continue;
    last = index;
    if (isBuiltin(groups.from)) {
      lines[index] = required(groups);
    } else {
      imports.push(line);
      given.push(...localNames(groups));
      lines[index] = "";
    }
  }
  const rest = lines.splice(last + 1).join("\n");
  const [unknown] = UNKNOWN.exec(`${lines.join("\n")}\n${rest.replace(EXPORT, "")}`) ?? [];
  if (unknown !== undefined) throw new Error(`${module} cannot be made a script of: "${unknown}"`);
  const [, exported = ""] = EXPORT.exec(rest) ?? [];
  const names = listOf(exported).map((name) => name.split(" as "));
  const body = rest
    .replace(EXPORT, () => `return {${names.map(([own, as = own]) => `${as}: ${own}`).join(", ")}};}};`)
    .replace(SOURCE_MAP, "")
    .replaceAll("import.meta", "importMeta")
    .replaceAll(/\bimport\(/g, "importModule(");
  // A module may declare a `require` of its own. It must be inside the function, where it hides ours.
  const head = `"use strict"; module.exports = ({ ${given.join(", ")} }, importMeta, importModule) => {${lines.join("\n")}{`;
  const text = `${head}${lines.length === 0 ? "" : "\n"}${body}\n//# sourceMappingURL=${basename(module)}.map\n`;
  writeFileSync(script, text);
  const loader = relative(dirname(module), LOADER);
  const call = `loadScript(new URL("${basename(script)}", import.meta.url))({ ${given.join(", ")} }, import.meta, (name) => import(name))`;
  const left = names.length === 0 ? "" : `export const { ${names.map(([own, as = own]) => as).join(", ")} } = `;
  writeFileSync(path, `${[...imports, `import { loadScript } from "${loader}";`, `${left}${call};`].join("\n")}\n`);
}

function isBuiltin(name) {
  return builtinModules.includes(name.replace(/^node:/, ""));
}

function required({ whole, named, from }) {
  const all = whole === undefined ? "" : `const ${whole.replace("* as ", "")} = require("${from}");`;
  return named === undefined ? all : `${all}const {${named.replaceAll(" as ", ": ")}} = require("${from}");`;
}

function localNames({ whole, named = "" }) {
  const wholes = whole === undefined ? [] : [whole.replace("* as ", "")];
  return [...wholes, ...listOf(named).map((name) => name.split(" as ").at(-1))];
}

function listOf(text) {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** A command that runs the code of most commands and has nothing to do, and its exit code. */
const COMMAND = "status /nonexistent --json";
const NOT_MOUNTED = 3;

async function keepCaches(dist, modules) {
  const { cacheOf, cachePath, loaded } = await import(pathToFileURL(join(dist, LOADER)));
  for (const module of modules) await import(pathToFileURL(join(dist, module)));
  process.on("exit", (code) => {
    process.exitCode = code === NOT_MOUNTED ? 0 : code || 1;
    for (const [path, script] of loaded) {
      writeFileSync(cachePath(path), cacheOf(readFileSync(path), script.createCachedData()));
    }
  });
  process.argv = [process.execPath, join(dist, MAIN), ...COMMAND.split(" ")];
  await import(pathToFileURL(process.argv[1]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [dist = "", ...modules] = process.argv.slice(2);
  await keepCaches(resolve(dist), modules);
}
