/**
 * Bundles the programs: a start reads a few files instead of hundreds. Types are removed, not checked.
 *
 *   node scripts/bundle.mjs SRC DIST
 *
 * Every file lies in a folder of dist/, as those of src/ do: `new URL("../metadata/…", import.meta.url)`
 * means the same in each. Source maps lie beside them; `node --enable-source-maps` reads them.
 */
import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { splitScript } from "./code-cache.mjs";

/**
 * What shares modules is bundled together. `whole`: all but the first entry in one file, as nothing in it is ever needed
 * alone. `first`: what this module loads at once in one file. `compiled`: what is large is kept as V8 compiles it
 * (code-cache.mjs). `apart`: packages that are not bundled with it.
 */
const BUNDLES = [
  { entries: ["lib/system-clock"] },
  { entries: ["lib/code-cache"] },
  // What speaks HTTP is loaded by few commands.
  { entries: ["cli/main"], first: "command-line", compiled: true, apart: [/^undici\//] },
  {
    compiled: true,
    // Its pieces are not read later, when there may be another build. Tests put another engine into it.
    entries: ["daemon/main", "daemon/process", "engine/api/engine", "engine/api/errors"],
    whole: "bundle",
  },
  { entries: ["metadata/checkpoint-worker"] },
  { entries: ["metadata/copy-worker"] },
  { entries: ["gateway/checkpoint-thread"] },
  // Read with the first change that is sent; one of another build is not used.
  { entries: ["client/http-thread"], whole: "http-thread-bundle" },
  { entries: ["client/keyring-process"] },
  { entries: ["client/index"] },
];

const COMPILE = fileURLToPath(new URL("./code-cache.mjs", import.meta.url));

/** Characters: what is smaller takes less to compile than to find. */
const LARGE = 64 * 1024;

/** Installed beside us: they have files of their own, or are loaded by few commands. */
const PACKAGES = [
  /^fastify$/,
  /^@fastify\//,
  /^oidc-provider$/,
  /^openid-client$/,
  /^file-type$/,
  /^cli-progress$/,
  /^fuse-native$/,
  /^@napi-rs\/keyring$/,
];

const SQLITE_ADDON = "better-sqlite3/build/Release/better_sqlite3.node";

/** One module in all programs of a process: whoever is loaded before one may change it (fault points of tests). */
const CLOCK = "lib/system-clock";

/** What the packages whose code is in the bundles ask to come with it. */
const LICENSES = "THIRD-PARTY-LICENSES";

/** Whoever starts meanwhile reads whole files: each takes the place of the one from before at once. */
async function bundleInto(dist, source) {
  const beside = mkdtempSync(`${dist}.`);
  try {
    const made = await bundle(source, beside);
    for (const file of made) {
      mkdirSync(dirname(join(dist, file)), { recursive: true });
      renameSync(join(beside, file), join(dist, file));
    }
    for (const path of readdirSync(dist, { recursive: true })) {
      if (/\.(js|js\.map|cjs|cache)$/.test(path) && !made.has(path)) rmSync(join(dist, path));
    }
  } finally {
    rmSync(beside, { recursive: true });
  }
}

/** Answers the paths of what it made, in the order in which they are to be put in place. */
async function bundle(source, dist) {
  const made = new Set();
  const packages = new Set();
  const modules = [];
  for (const { entries, whole, first, compiled = false, apart = [] } of BUNDLES) {
    const bundled = await rolldown({
      input: Object.fromEntries(entries.map((name) => [name, join(source, `${name}.ts`)])),
      platform: "node",
      external: [...PACKAGES, ...apart, SQLITE_ADDON],
      plugins: [sharedClock(join(source, `${CLOCK}.ts`)), sqliteBinding, widthOfAscii, inAscii],
    });
    // Not the program itself: it waits to its end, and so would whoever imports from its file later.
    const isInWhole = (path) => path !== join(source, `${entries[0]}.ts`);
    // The bundler takes along what it imports.
    const isFirst = (path) => path === join(source, dirname(entries[0]), `${first}.ts`);
    const group = whole === undefined ? { name: first, test: isFirst } : { name: whole, test: isInWhole };
    const { output } = await bundled.write({
      dir: dist,
      entryFileNames: "[name].js",
      chunkFileNames: `${dirname(entries[0])}/[name].js`,
      sourcemap: true,
      // Who loads a file late may find that of another build.
      minifyInternalExports: false,
      comments: { jsdoc: false, annotation: false },
      ...(group.name === undefined ? {} : { codeSplitting: { groups: [group] } }),
    });
    const inOrder = [...output].sort((one, other) => Number(one.isEntry ?? false) - Number(other.isEntry ?? false));
    for (const { fileName, moduleIds = [], code } of inOrder) {
      made.add(fileName);
      if (compiled && code?.length > LARGE) modules.push(fileName);
      for (const id of moduleIds) packages.add(/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0]);
    }
    await bundled.close();
  }
  for (const module of modules) splitScript(dist, module);
  execFileSync(process.execPath, [COMPILE, dist, ...modules], { stdio: ["ignore", "ignore", "inherit"], env: {} });
  const scripts = modules.flatMap((module) => [".cache", ".cjs"].map((kind) => module.replace(/\.js$/, kind)));
  packages.delete(undefined);
  writeFileSync(join(dist, LICENSES), [...new Set([...packages].map(licenseOf))].sort().join("\n\n"));
  // A module is not there before the script it loads, and a program not before what it begins with.
  return new Set([...scripts, ...made, LICENSES]);
}

/** `folder`: of an installed package. */
function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
  return [`${name} ${version} (${license})`, ...texts].join("\n\n");
}

function sharedClock(path) {
  return {
    name: "shared-clock",
    async resolveId(id, importer, options) {
      if (importer === undefined || !id.endsWith("/system-clock.ts")) return null;
      const resolved = await this.resolve(id, importer, { ...options, skipSelf: true });
      return resolved?.id === path ? { id: `../${CLOCK}.js`, external: true } : resolved;
    },
  };
}

/** `bindings` looks for the addon beside the file that asks for it, which is ours now. */
const sqliteBinding = {
  name: "sqlite-binding",
  resolveId: (id) => (id === "bindings" ? "\0bindings" : null),
  load: (id) => (id === "\0bindings" ? `module.exports = () => require("${SQLITE_ADDON}");` : null),
};

/** What yargs lays out is the help, which is in ASCII. For the width of any text its package begins with the tables of Unicode. */
const widthOfAscii = {
  name: "width-of-ascii",
  resolveId: (id) => (id === "string-width" ? "\0string-width" : null),
  load: (id) => (id === "\0string-width" ? "export default (text) => text.length;" : null),
};

/** Node reads a text at once where each character is one byte; another one of this length takes it longer than to compile it. */
const inAscii = {
  name: "in-ascii",
  generateBundle(_options, files) {
    for (const file of Object.values(files)) if (file.type === "chunk") file.code = escaped(file.code);
  },
};

function escaped(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const [source = "", dist = ""] = process.argv.slice(2).map((path) => resolve(path));
// The bundler goes by real paths.
await bundleInto(dist, realpathSync(source));
