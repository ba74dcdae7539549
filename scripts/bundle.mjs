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
 * Programs that share modules are bundled together. `whole`: the file with all modules but the first entry, for a
 * program that needs all of them. `first`: a module that lies in one file with all its static imports. `compiled`: V8's
 * compiled code of large files is kept (code-cache.mjs). `apart`: packages that are not bundled.
 */
const BUNDLES = [
  { entries: ["lib/system-clock"] },
  { entries: ["lib/code-cache"] },
  // Few commands load the HTTP client.
  { entries: ["cli/main"], first: "command-line", compiled: true, apart: [/^undici\//] },
  {
    compiled: true,
    // All of it is read at the start: a later read might find another build. Tests put another engine into it.
    entries: ["daemon/main", "daemon/process", "engine/api/engine", "engine/api/errors"],
    whole: "bundle",
  },
  { entries: ["metadata/checkpoint-worker"] },
  { entries: ["metadata/copy-worker"] },
  { entries: ["gateway/checkpoint-thread"] },
  // The thread is started with the first change that is sent. A file of another build is not used.
  { entries: ["client/http-thread"], whole: "http-thread-bundle" },
  { entries: ["client/keyring-process"] },
  { entries: ["client/index"] },
];

const COMPILE = fileURLToPath(new URL("./code-cache.mjs", import.meta.url));

/** In characters. A smaller file is compiled faster than its compiled code is found. */
const LARGE = 64 * 1024;

/** Packages that are installed beside the program: they have files of their own, or few commands load them. */
const PACKAGES = [
  /^@fastify\//,
  /^oidc-provider$/,
  /^openid-client$/,
  /^cli-progress$/,
  /^fuse-native$/,
  /^@napi-rs\/keyring$/,
];

const SQLITE_ADDON = "better-sqlite3/build/Release/better_sqlite3.node";

/**
 * A module that all programs of a process share, so that a module loaded earlier can change it (fault points of tests).
 */
const CLOCK = "lib/system-clock";

/** The licenses of the packages whose code is in the bundles. */
const LICENSES = "THIRD-PARTY-LICENSES";

/** Replaces each file at once by a rename, so that a program that starts meanwhile reads whole files. */
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

/** Returns the paths of the new files, in the order in which they must be put in place. */
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
    // All modules but the program itself: it runs to its end, and a later import from its file would wait for that.
    const isInWhole = (path) => path !== join(source, `${entries[0]}.ts`);
    // The bundler adds the imports of this module.
    const isFirst = (path) => path === join(source, dirname(entries[0]), `${first}.ts`);
    const group = whole === undefined ? { name: first, test: isFirst } : { name: whole, test: isInWhole };
    const { output } = await bundled.write({
      dir: dist,
      entryFileNames: "[name].js",
      chunkFileNames: `${dirname(entries[0])}/[name].js`,
      sourcemap: true,
      // A program that loads a file late may find that of another build.
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
  // The order puts a script before the module that loads it, and a program after its modules.
  return new Set([...scripts, ...made, LICENSES]);
}

/** Returns the license of the package that is installed in the folder. */
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

/** Replaces the package `bindings`, which looks for the addon beside its caller: in a bundle that is our own file. */
const sqliteBinding = {
  name: "sqlite-binding",
  resolveId: (id) => (id === "bindings" ? "\0bindings" : null),
  load: (id) => (id === "\0bindings" ? `module.exports = () => require("${SQLITE_ADDON}");` : null),
};

/**
 * Replaces the package `string-width`, which loads the tables of Unicode. yargs uses it only for the help, which is in
 * ASCII.
 */
const widthOfAscii = {
  name: "width-of-ascii",
  resolveId: (id) => (id === "string-width" ? "\0string-width" : null),
  load: (id) => (id === "\0string-width" ? "export default (text) => text.length;" : null),
};

/**
 * Escapes other characters than ASCII. Node decodes a text of one-byte characters at once; decoding any other text of
 * this length takes longer than compiling it.
 */
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
// The bundler compares real paths.
await bundleInto(dist, realpathSync(source));
