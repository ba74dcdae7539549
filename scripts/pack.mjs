/**
 * `npm run pack [-- --to DIR]`: does all set-up, makes the two packages, and prints their paths, one a line:
 *
 *   wsfs-VERSION.tgz          the product
 *   wsfs-client-VERSION.tgz   src/client with its parts of src/contract and src/lib; installing it compiles nothing
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { projectFolder, setup } from "./setup.mjs";

const ENTRY = "client/index";
/** A program that the SDK starts. */
const KEYRING_PROCESS = "client/keyring-process";
/** An optional package, for users who keep logins in the keyring. */
const KEYRING = "@napi-rs/keyring";
/** The packages that the SDK uses. */
const PACKAGES = ["eventsource-parser", "openid-client", "undici", "zod"];
/** The SDK's types use those of Node. A program has one version of those, so the SDK accepts any. */
const NODE_TYPES = { "@types/node": "*" };

/** The SDK as a package of its own in `folder`. */
async function makeClient(folder) {
  // rolldown is loaded here because it may be missing before the set-up.
  const { rolldown } = await import("rolldown");
  const isForeign = (id) => [...PACKAGES, KEYRING].some((name) => id === name || id.startsWith(`${name}/`));
  const source = realpathSync(join(projectFolder, "src"));
  const input = Object.fromEntries([ENTRY, KEYRING_PROCESS].map((name) => [name, join(source, `${name}.ts`)]));
  const bundled = await rolldown({ input, platform: "node", external: isForeign });
  const dist = join(folder, "dist");
  const names = { entryFileNames: "[name].js", chunkFileNames: "client/[name].js", minifyInternalExports: false };
  const { output } = await bundled.write({ dir: dist, ...names });
  await bundled.close();
  const foreign = output.flatMap(({ imports = [], dynamicImports = [] }) => [...imports, ...dynamicImports]);
  const unknown = foreign.find((id) => !isForeign(id) && !id.startsWith("node:") && !id.startsWith("client/"));
  if (unknown !== undefined) throw new Error(`the SDK imports ${unknown}, which its package does not ask for`);

  for (const file of typesFrom(join(projectFolder, `dist/${ENTRY}.d.ts`))) {
    const copy = join(dist, relative(join(projectFolder, "dist"), file));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(file, copy);
  }
  const { version, license, engines, dependencies, optionalDependencies } = JSON.parse(read("package.json"));
  const description = {
    name: "wsfs-client",
    version,
    description: "The SDK of wsfs: files, nodes and journal of a remote workspace",
    license,
    type: "module",
    engines,
    exports: {
      ".": { types: `./dist/${ENTRY}.d.ts`, default: `./dist/${ENTRY}.js` },
      "./package.json": "./package.json",
    },
    files: ["dist"],
    dependencies: { ...NODE_TYPES, ...Object.fromEntries(PACKAGES.map((name) => [name, dependencies[name]])) },
    peerDependencies: { [KEYRING]: `^${optionalDependencies[KEYRING]}` },
    peerDependenciesMeta: { [KEYRING]: { optional: true } },
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(description, undefined, 2)}\n`);
  // Its links lead to pages and files that are not in the package.
  const page = read("docs/sdk.md").replaceAll(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, "$1");
  writeFileSync(join(folder, "README.md"), page.replaceAll('"wsfs/client"', '"wsfs-client"'));
  copyFileSync(join(projectFolder, "LICENSE"), join(folder, "LICENSE"));
}

/** Returns the file and those it imports. */
function typesFrom(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
    typesFrom(resolve(dirname(file), path).replace(/\.ts$/, ".d.ts"), found);
  }
  return found;
}

function read(path) {
  return readFileSync(join(projectFolder, path), "utf8");
}

/** Packs the `files` of its package.json without running any build. */
function pack(folder, to) {
  const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", to];
  const [{ filename }] = JSON.parse(execFileSync("npm", args, { cwd: folder, encoding: "utf8" }));
  process.stdout.write(`${join(to, filename)}\n`);
}

const [option, to = projectFolder, ...more] = process.argv.slice(2);
if ((option !== undefined && option !== "--to") || more.length > 0) {
  process.stderr.write(`pack: expected --to DIR, got "${process.argv.slice(2).join(" ")}"\n`);
  process.exit(2);
}
await setup({ forPack: true });
const folder = mkdtempSync(join(tmpdir(), "wsfs-pack-"));
try {
  await makeClient(folder);
  mkdirSync(to, { recursive: true });
  pack(projectFolder, resolve(to));
  pack(folder, resolve(to));
} finally {
  rmSync(folder, { recursive: true });
}
