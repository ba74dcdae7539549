/**
 * Builds the native parts of the package, for x64 and arm64 with glibc 2.28, the oldest that Node supports. So an
 * installation compiles nothing of wsfs. native/binding.gyp lists their sources. Set-up runs this.
 *
 *   node scripts/prebuild.mjs
 *
 *   native/prebuilds/linux-x64/{wsfs.node,wsfs-commit-log.so,wsfs-supervisor,wsfs-replayer}
 *   native/prebuilds/linux-arm64/…
 *
 * The addon and the extension use no later function of glibc (native/glibc-2.28.h); the programs are linked statically.
 * One machine builds for both processors: the compiler for the other one is a Debian package (debian.mjs).
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const project = dirname(dirname(fileURLToPath(import.meta.url)));
const native = join(project, "native");

const TRIPLES = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };
const OLDEST_GLIBC = [2, 28];

const COMMON = ["-O3", "-fno-omit-frame-pointer", "-pthread", "-s"];
const LOADED = ["-fPIC", "-shared", "-include", "glibc-2.28.h"];
/** By the type of a target: the end of its file name, and its linker options. */
const KINDS = {
  loadable_module: { suffix: ".node", flags: LOADED },
  shared_library: { suffix: ".so", flags: LOADED },
  executable: { suffix: "", flags: ["-static"] },
};

/** The headers of Node-API, libuv and SQLite are the same for each processor. */
function headers() {
  // The second place is that of node-gyp, which may have downloaded them for the build of this machine.
  const places = [
    join(dirname(process.execPath), "../include/node"),
    join(homedir(), ".cache/node-gyp", process.versions.node, "include/node"),
  ];
  const node = places.find((place) => existsSync(join(place, "node_api.h")));
  if (node === undefined) throw new Error(`Node's headers are in none of ${places.join(", ")}`);
  return [node, join(project, "node_modules/better-sqlite3/deps/sqlite3")];
}

/** binding.gyp is JSON with comments. */
function targets() {
  const text = readFileSync(join(native, "binding.gyp"), "utf8").replace(/^\s*#.*$/gm, "");
  const { target_defaults: defaults, targets } = JSON.parse(text);
  return targets.map(({ target_name: name, type = "loadable_module", cflags = [], ldflags = [], sources }) => ({
    name: `${name}${KINDS[type].suffix}`,
    sources,
    flags: [
      ...defaults.defines.map((define) => `-D${define}`),
      ...[...defaults.cflags, ...cflags, ...COMMON, ...KINDS[type].flags],
      ...[...(defaults.ldflags ?? []), ...ldflags],
    ],
  }));
}

function build() {
  const includes = headers().flatMap((path) => ["-isystem", path]);
  const folder = join(native, "prebuilds");
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  for (const [arch, triple] of Object.entries(TRIPLES)) {
    const to = join(draft, `linux-${arch}`);
    mkdirSync(to, { recursive: true });
    const compiler = arch === process.arch ? "cc" : `${triple}-gcc`;
    for (const { name, sources, flags } of targets()) {
      const output = join(to, name);
      execFileSync(compiler, [...includes, ...flags, "-o", output, ...sources], { cwd: native, stdio: "inherit" });
      checkGlibc(output);
    }
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(draft, folder);
}

function checkGlibc(file) {
  const asked = readFileSync(file, "latin1").matchAll(/\0GLIBC_(\d+)\.(\d+)/g);
  const [major, minor] = OLDEST_GLIBC;
  const newer = [...asked].find(([, one, other]) => Number(one) > major || Number(other) > minor);
  if (newer === undefined) return;
  const [, ...version] = newer;
  throw new Error(
    `${file} asks for glibc ${version.join(".")}, expected ${major}.${minor} at most (native/glibc-2.28.h)`,
  );
}

try {
  build();
} catch (error) {
  process.stderr.write(`prebuild: ${error.message}\n`);
  process.exitCode = 1;
}
