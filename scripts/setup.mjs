/**
 * All set-up of a clone, each step only when it is needed: Node's version, Debian packages, npm packages, the native
 * build, the compile. It runs before any package is installed, so it and its imports use only Node's own modules.
 *
 *   node scripts/setup.mjs [--tests] [--quiet]
 *
 * A step leaves a stamp in the folder it fills. The stamp is written last and removed first, so a process that finds
 * all stamps right may go on without the lock. Progress goes to stderr, one line a step.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { installDebianPackages, missingDebianPackages } from "./debian.mjs";
import { takeLock } from "./lock.mjs";

export const projectFolder = dirname(dirname(fileURLToPath(import.meta.url)));
export const mainFile = join(projectFolder, "dist/cli/main.js");

const OLDEST_NODE = [20, 19];
const modules = join(projectFolder, "node_modules");
const modulesStamp = join(modules, ".wsfs-setup.json");
const native = join(projectFolder, "native");
const nativeStamp = join(native, "build/.wsfs-setup");
const prebuildsStamp = join(native, "prebuilds/.wsfs-setup");
const source = join(projectFolder, "src");
const dist = join(projectFolder, "dist");
const distStamp = join(dist, ".setup");

/**
 * Resolves when all set-up is done. If it fails, ends the process with exit code 1 and names the reason. `forTests` also
 * asks for the programs that the tests use, `forPack` for the builds for other machines. `quiet` leaves out the
 * progress.
 */
export async function setup({ forTests = false, forPack = false, quiet = false } = {}) {
  await orExit(async () => {
    checkNode();
    const wanted = { forTests, forPack };
    if (stepsToDo(wanted).length === 0) return;
    mkdirSync(dist, { recursive: true });
    const progress = quiet ? () => {} : (line) => process.stderr.write(`setup: ${line}\n`);
    const release = takeLock(join(dist, ".setup.lock"), progress);
    try {
      // The steps are checked again: another set-up may have done them while this one waited for the lock.
      await take(stepsToDo(wanted), progress);
    } finally {
      release();
    }
  });
}

/** Builds native/ and src/ from scratch and ignores the stamps. Ends the process with exit code 1 if it fails. */
export async function build(progress) {
  await orExit(async () => {
    await buildNative(progress);
    await compile(progress, { afresh: true });
  });
}

/** A failure whose message is all that the user needs. */
class SetupFailure extends Error {}

async function orExit(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error;
    process.stderr.write(`setup: ${error.message}\n`);
    process.exit(1);
  }
}

/**
 * Takes the steps in their order. A step can give `beside` work that no later step needs. All of the work has ended
 * before a failure is thrown: a compiler that outlives its set-up would write into the next one.
 */
async function take(steps, progress) {
  const ends = [];
  const beside = (work) =>
    ends.push(
      work.then(
        () => undefined,
        (error) => error,
      ),
    );
  const inOrder = async () => {
    for (const step of steps) await step(progress, beside);
  };
  beside(inOrder());
  let failure;
  // The steps add to the array while it is walked.
  for (const end of ends) {
    const error = await end;
    failure ??= error;
  }
  if (failure !== undefined) throw failure;
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [oldMajor, oldMinor] = OLDEST_NODE;
  if (major > oldMajor || (major === oldMajor && minor >= oldMinor)) return;
  fail(`Node.js ${OLDEST_NODE.join(".")} or newer is needed; this is ${process.versions.node}`);
}

function stepsToDo({ forTests, forPack }) {
  const packages = packagesWanted();
  const addon = nativeWanted();
  const prebuilds = forPack && prebuildsWanted();
  const missing = missingDebianPackages({ toBuild: packages || addon, toPack: prebuilds, forTests });
  const steps = [];
  if (missing.length > 0) steps.push((progress) => installDebianPackages(missing, progress, fail));
  if (packages) steps.push(installPackages);
  if (addon) steps.push(buildNative);
  if (prebuilds) steps.push(buildPrebuilds);
  if (compileWanted()) steps.push(compile);
  return steps;
}

// npm packages

function lockHash() {
  return hash([join(projectFolder, "package-lock.json")]);
}

function readJson(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

function packagesWanted() {
  const stamp = readJson(modulesStamp);
  return stamp?.lock !== lockHash() || isForOtherNode(stamp);
}

/** True if better-sqlite3 was built for another Node and this Node has no usable SQLite of its own. */
function isForOtherNode(stamp) {
  return stamp.abi !== process.versions.modules && !hasSqlite();
}

/** True if npm's own record of installed packages matches the lockfile (after `npm ci` by hand). */
function packagesAreThere() {
  const installed = readJson(join(modules, ".package-lock.json"))?.packages;
  if (installed === undefined) return false;
  if (!existsSync(join(modules, "better-sqlite3/build/Release/better_sqlite3.node")) && !hasSqlite()) return false;
  const { "": _project, ...wanted } = readJson(join(projectFolder, "package-lock.json")).packages;
  const same = ([name, entry]) =>
    name in installed
      ? installed[name].version === entry.version && installed[name].integrity === entry.integrity
      : entry.optional === true; // made for another kind of machine
  return Object.entries(wanted).every(same) && Object.keys(installed).every((name) => name in wanted);
}

async function installPackages(progress, beside) {
  const stamp = readJson(modulesStamp);
  const otherNode = stamp !== undefined && isForOtherNode(stamp);
  if (otherNode || !packagesAreThere()) {
    // npm ci would empty the folder behind the link, which other checkouts use.
    if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink()) {
      fail(`node_modules is a link to ${realpathSync(modules)}, which does not hold what package-lock.json asks for`);
    }
    progress("npm packages (npm ci; some minutes where better-sqlite3 has to be compiled)");
    rmSync(modulesStamp, { force: true });
    await run("npm", ["ci", "--include=dev", "--no-audit", "--no-fund", "--ignore-scripts"]);
    // The compiler of its C uses one processor for most of the whole set-up.
    beside(buildSqlite(progress).then(stampPackages));
  } else {
    stampPackages();
  }
}

function stampPackages() {
  writeFileSync(modulesStamp, `${JSON.stringify({ lock: lockHash(), abi: process.versions.modules })}\n`);
}

/**
 * Builds better-sqlite3 apart from `npm ci`, which would remove an optional package that cannot be built. The programs
 * are bundled with its JavaScript.
 */
async function buildSqlite(progress) {
  const args = ["rebuild", "better-sqlite3", ...nodeHeaders()];
  if (!hasSqlite()) await run("npm", args);
  else if ((await attempt("npm", args)).status !== 0)
    progress(`better-sqlite3 has no build for Node ${process.version}: node:sqlite is used`);
}

/** True if the SQLite of this Node has all features that lib/sqlite needs. */
function hasSqlite() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 16);
}

/** The option that names the headers beside node: without it, node-gyp would download them. */
export function nodeHeaders() {
  const prefix = join(dirname(process.execPath), "..");
  const named = process.env.npm_config_nodedir !== undefined;
  return !named && existsSync(join(prefix, "include/node/node.h")) ? [`--nodedir=${prefix}`] : [];
}

// native build

function nativeHash() {
  const files = filesBelow(
    native,
    (path) => /\.[ch]$|(^|\/)binding\.gyp$/.test(path) && !/^(build|prebuilds)\//.test(path),
  );
  // The version of Node does not count: the addon uses only Node-API.
  return hash(files, process.arch);
}

function nativeWanted() {
  return !isStamped(nativeStamp, nativeHash());
}

/** Builds native/ from scratch into native/build. */
async function buildNative(progress) {
  progress("native build (node-gyp rebuild -C native)");
  rmSync(nativeStamp, { force: true });
  await run(process.execPath, [join(modules, "node-gyp/bin/node-gyp.js"), "rebuild", "-C", native, ...nodeHeaders()]);
  writeFileSync(nativeStamp, nativeHash());
}

function prebuildsWanted() {
  return !isStamped(prebuildsStamp, nativeHash());
}

/** Builds native/ for all supported processors, into native/prebuilds. */
async function buildPrebuilds(progress) {
  progress("native build for x64 and arm64 (node scripts/prebuild.mjs)");
  await run(process.execPath, [join(projectFolder, "scripts/prebuild.mjs")]);
  writeFileSync(prebuildsStamp, nativeHash());
}

// compile

function compileHash() {
  const configs = [
    "tsconfig.json",
    "src/tsconfig.json",
    "package-lock.json",
    "scripts/bundle.mjs",
    "scripts/code-cache.mjs",
  ].map((name) => join(projectFolder, name));
  // The code that V8 compiles is for the very Node that runs.
  return hash([...configs, ...filesBelow(source, (path) => path.endsWith(".ts"))], process.version, process.arch);
}

function compileWanted() {
  return !isStamped(distStamp, compileHash()) || !existsSync(mainFile);
}

/** Compiles src/ to dist/: tsc checks the types and writes declarations, bundle.mjs makes the programs. */
async function compile(progress, { afresh = false } = {}) {
  progress("compile (tsc -p src/tsconfig.json; node scripts/bundle.mjs src dist)");
  const before = compileHash();
  rmSync(distStamp, { force: true });
  if (afresh || !existsSync(mainFile)) rmSync(join(dist, ".tsbuildinfo"), { force: true });
  await run(process.execPath, [join(modules, "typescript/bin/tsc"), "-p", join(source, "tsconfig.json")]);
  for (const file of filesBelow(dist, (path) => path.endsWith(".d.ts"))) {
    const from = relative(dist, file).replace(/\.d\.ts$/, ".ts");
    if (!existsSync(join(source, from))) rmSync(file);
  }
  await run(process.execPath, [join(projectFolder, "scripts/bundle.mjs"), source, dist]);
  chmodSync(mainFile, 0o755);
  // This is the hash from before the compile: a file that was saved meanwhile is compiled next time.
  writeFileSync(distStamp, before);
}

// tools

function isStamped(stamp, expected) {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === expected;
}

/** Absolute paths, sorted; `wanted` sees them relative to the folder. */
function filesBelow(folder, wanted) {
  return readdirSync(folder, { recursive: true })
    .filter((path) => wanted(path))
    .sort()
    .map((path) => join(folder, path));
}

function hash(files, ...extra) {
  const sum = createHash("sha256").update(JSON.stringify(extra));
  for (const file of files) {
    const bytes = readFileSync(file);
    sum.update(`\n${relative(projectFolder, file)} ${bytes.length}\n`).update(bytes);
  }
  return sum.digest("hex");
}

/** Resolves when the program has ended; `error`: it could not be started. */
function attempt(command, args) {
  const child = spawn(command, args, { cwd: projectFolder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ status: null, error, output }));
    child.once("close", (status, signal) => resolve({ status, signal, output }));
  });
}

async function run(command, args) {
  const { status, signal, error, output } = await attempt(command, args);
  if (status === 0) return;
  process.stderr.write(output);
  fail(`"${[command, ...args].join(" ")}" failed (${error?.message ?? (signal || `exit code ${status}`)})`);
}

function fail(line) {
  throw new SetupFailure(line);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main();
}

async function main() {
  const known = ["--tests", "--quiet"];
  const unknown = process.argv.slice(2).find((argument) => !known.includes(argument));
  await orExit(() => {
    if (unknown !== undefined) fail(`expected ${known.join(" or ")}, got "${unknown}"`);
  });
  await setup({ forTests: process.argv.includes("--tests"), quiet: process.argv.includes("--quiet") });
}
