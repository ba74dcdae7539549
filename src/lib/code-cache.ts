/**
 * Loads a program that the build made a script of, with what V8 compiled it to then: half of what a short command
 * takes would be compiling. Knows nothing of what the programs are; `scripts/code-cache.mjs` makes both files.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";

/** The program's body: given what its module imports from beside it, it answers what that exports. */
export type Body = (
  imports: Readonly<Record<string, unknown>>,
  importMeta: ImportMeta,
  importModule: (name: string) => Promise<unknown>,
) => Readonly<Record<string, unknown>>;

/** What was loaded here, by its path, for who keeps what it is compiled to. */
export const loaded = new Map<string, Script>();

/**
 * `url`: of the script. A cache that is damaged, or of another script or another Node is passed over: then this takes
 * longer, and is the same.
 */
export function loadScript(url: URL): Body {
  const path = fileURLToPath(url);
  const require = createRequire(url);
  // Node reads the source maps of what it loads itself.
  if (wantsSourceMaps()) return require(path) as Body;
  const bytes = readFileSync(path);
  const cachedData = readCache(path, bytes);
  // Traces have the name that the cache was made with: one that says nothing of where that was.
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
 * The Node that runs. V8 takes what another release of Node with as good as the same V8 has written, or one for another
 * processor, and dies of that: what was compiled names places in Node itself.
 */
const NODE = `${process.version} ${process.arch} ${sizeOf(process.execPath)}`;

const SUM_LENGTH = 20;

/** Undefined of a program that is not there any more, as while it is upgraded: no cache is of that. */
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

/** What the file is to hold. V8 looks at the script's length only, and dies of data that is not as it wrote it. */
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
