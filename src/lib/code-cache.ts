/**
 * Loads a program from a script of the build, together with the code that V8 compiled during the build: compiling takes
 * half the time of a short command. `scripts/code-cache.mjs` makes both files. It does not know the programs.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";

/**
 * The program's body as a function. Its argument is the program's imports from neighbouring modules; it returns the
 * program's exports.
 */
type Body = (
  imports: Readonly<Record<string, unknown>>,
  importMeta: ImportMeta,
  importModule: (name: string) => Promise<unknown>,
) => Readonly<Record<string, unknown>>;

/** The loaded scripts, by path. The build saves their compiled code. */
export const loaded = new Map<string, Script>();

/**
 * `url` is that of the script. A cache that is damaged, or belongs to another script or another Node, is ignored:
 * loading then only takes longer.
 */
export function loadScript(url: URL): Body {
  const path = fileURLToPath(url);
  const require = createRequire(url);
  // Node reads source maps only for files that it loads itself.
  if (wantsSourceMaps()) return require(path) as Body;
  const bytes = readFileSync(path);
  const cachedData = readCache(path, bytes);
  // Stack traces show the name that the cache was made with, so the name must not contain the build's folder.
  const filename = path.split(sep).slice(-2).join(sep);
  const text = Module.wrap(bytes.toString("latin1"));
  const script = new Script(text, { filename, ...(cachedData === undefined ? {} : { cachedData }) });
  loaded.set(path, script);
  const module = { exports: undefined as unknown };
  (script.runInThisContext() as (...given: unknown[]) => void)(module.exports, require, module, path);
  return module.exports as Body;
}

function wantsSourceMaps(): boolean {
  return [...process.execArgv, process.env.NODE_OPTIONS ?? ""].some((text) => /--enable[-_]source[-_]maps/.test(text));
}

/**
 * Identifies the running Node. V8 accepts a cache of another Node release with nearly the same V8, or for another
 * processor, and then crashes: compiled code refers to places in Node itself.
 */
const NODE = `${process.version} ${process.arch} ${sizeOf(process.execPath)}`;

const SUM_LENGTH = 20;

/** Undefined when the program's file is gone, as during an upgrade. No cache matches that. */
function sizeOf(program: string): number | undefined {
  try {
    return statSync(program).size;
  } catch {
    return undefined;
  }
}

export function cachePath(script: string): string {
  return script.replace(/\.cjs$/, ".cache");
}

/**
 * The content of a cache file: a checksum and V8's data. V8 checks only the script's length, and crashes on data that
 * it did not write.
 */
export function cacheOf(script: Uint8Array, data: Uint8Array, node = NODE): Uint8Array {
  return Buffer.concat([sumOf(script, data, node), data]);
}

function sumOf(script: Uint8Array, data: Uint8Array, node: string): Buffer {
  return createHash("sha1").update(`${node} ${script.length} `).update(script).update(data).digest();
}

function readCache(path: string, script: Uint8Array): Buffer | undefined {
  let cache: Buffer;
  try {
    cache = readFileSync(cachePath(path));
  } catch {
    return undefined;
  }
  const data = cache.subarray(SUM_LENGTH);
  return sumOf(script, data, NODE).equals(cache.subarray(0, SUM_LENGTH)) ? data : undefined;
}
