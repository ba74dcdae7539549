/**
 * Bundles the programs: a start reads a few files instead of hundreds. Types are removed, not checked.
 *
 *   node scripts/bundle.mjs SRC DIST
 *
 * Every file lies in a folder of dist/, as those of src/ do: `new URL("../metadata/…", import.meta.url)`
 * means the same in each. Source maps lie beside them; `node --enable-source-maps` reads them.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { rolldown } from "rolldown";

/** What shares modules is bundled together. `whole`: all in one file, as nothing in it is ever needed alone. */
const BUNDLES = [
  { entries: ["cli/main"] },
  {
    // Its pieces are not read later, when there may be another build. Tests put another engine into it.
    entries: ["daemon/main", "daemon/process", "vfs/engine", "vfs/errors"],
    whole: "bundle",
  },
  { entries: ["metadata/checkpoint-worker"] },
  { entries: ["metadata/copy-worker"] },
  // Read with the first change that is sent; one of another build is not used.
  { entries: ["client/http-thread"], whole: "http-thread-bundle" },
  { entries: ["client/index"] },
  { entries: ["lib/system-clock"] },
];

/** Installed beside us: they have files of their own, or are loaded by few commands. */
const PACKAGES = [/^fastify$/, /^@fastify\//, /^file-type$/, /^cli-progress$/, /^fuse-native$/];

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
      if (/\.js(\.map)?$/.test(path) && !made.has(path)) rmSync(join(dist, path));
    }
  } finally {
    rmSync(beside, { recursive: true });
  }
}

/** Answers the paths of what it made. */
async function bundle(source, dist) {
  const made = new Set();
  const packages = new Set();
  for (const { entries, whole } of BUNDLES) {
    const bundled = await rolldown({
      input: Object.fromEntries(entries.map((name) => [name, join(source, `${name}.ts`)])),
      platform: "node",
      external: [...PACKAGES, SQLITE_ADDON],
      plugins: [sharedClock(join(source, `${CLOCK}.ts`)), sqliteBinding, inAscii],
    });
    // Not the program itself: it waits to its end, and so would whoever imports from its file later.
    const isInWhole = (path) => path !== join(source, `${entries[0]}.ts`);
    const { output } = await bundled.write({
      dir: dist,
      entryFileNames: "[name].js",
      chunkFileNames: `${dirname(entries[0])}/[name].js`,
      sourcemap: true,
      // Who loads a file late may find that of another build.
      minifyInternalExports: false,
      comments: { jsdoc: false, annotation: false },
      ...(whole === undefined ? {} : { codeSplitting: { groups: [{ name: whole, test: isInWhole }] } }),
    });
    for (const { fileName, moduleIds = [] } of output) {
      made.add(fileName);
      for (const id of moduleIds) packages.add(/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0]);
    }
    await bundled.close();
  }
  packages.delete(undefined);
  writeFileSync(join(dist, LICENSES), [...new Set([...packages].map(licenseOf))].sort().join("\n\n"));
  return made.add(LICENSES);
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
await bundleInto(dist, source);
