/** The built programs: how much a start has to read, and that traces still tell where in src/ something was. Needs dist/. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const DIST = fileURLToPath(new URL("../../dist/", import.meta.url));
const IMPORT = /^(?:import|export)\b(?:[^;"'()=]*\bfrom )?"([^"]+)";/gm;

/** scripts/code-cache.mjs made one of the module. */
const SCRIPT = /^.*\bloadScript\(new URL\("([^"]+)"/gm;
const LOADER = "lib/code-cache.js";

/** What is loaded before the program's first line runs: files below dist/, and packages. */
function loadedBy(program: string): string[] {
  const loaded = new Set<string>();
  const visit = (path: string) => {
    if (loaded.has(path)) return;
    loaded.add(path);
    if (!path.endsWith(".js")) return;
    const text = readFileSync(join(DIST, path), "utf8");
    for (const [, name = ""] of text.matchAll(SCRIPT)) visit(join(dirname(path), name));
    for (const [, name = ""] of text.matchAll(IMPORT)) {
      if (name.startsWith(".")) visit(join(dirname(path), name));
      else if (!/^(?:node:|(?:assert|fs|path|url|util)$)/.test(name)) visit(name);
    }
  };
  visit(program);
  return [...loaded].sort();
}

test("a daemon is one script, besides the clock that tests may change", () => {
  const modules = ["daemon/bundle.js", "daemon/main.js", LOADER, "lib/system-clock.js"];
  expect(loadedBy("daemon/main.js")).toEqual(["daemon/bundle.cjs", ...modules]);
});

test("what is large of a program comes compiled, and of this build", async () => {
  const scripts = readdirSync(DIST, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".cjs"));
  expect(scripts).toContain("daemon/bundle.cjs");
  const checking = `
    const { loaded, loadScript } = await import(process.argv[1] + "${LOADER}");
    for (const script of process.argv.slice(2)) loadScript(new URL("file:" + process.argv[1] + script));
    console.log(JSON.stringify([...loaded.values()].map((script) => script.cachedDataRejected)));`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...["--input-type=module", "--eval", checking, DIST],
    ...scripts,
  ]);
  expect(JSON.parse(stdout)).toEqual(scripts.map(() => false));
});

test("no module of a program but scripts is worth it", () => {
  const sizes = ["cli", "daemon"].flatMap((folder) =>
    readdirSync(join(DIST, folder))
      .filter((name) => name.endsWith(".js"))
      .map((name) => statSync(join(DIST, folder, name)).size),
  );
  expect(Math.max(...sizes)).toBeLessThan(64 * 1024);
});

test("the optional package is asked for when it is needed, and is in no file of ours", () => {
  const text = readFileSync(join(DIST, "daemon/bundle.cjs"), "utf8");
  expect(text.includes('importModule("fuse-native")')).toBe(true);
  expect(text.includes("node_modules/fuse-native")).toBe(false);
});

test.each([
  ["checkpoint-worker", ["lib/system-clock.js"]],
  ["copy-worker", []],
])("a thread is one file, besides the clock: %s", (name, besides) => {
  expect(loadedBy(`metadata/${name}.js`)).toEqual([...besides, `metadata/${name}.js`]);
});

test("the command line loads no package and no schema before it knows its command", () => {
  const loaded = loadedBy("cli/main.js");
  const others = loaded.filter((path) => !path.startsWith("cli/") || path.includes("schemas"));
  expect(others).toEqual([LOADER]);
  expect(loaded.length).toBeLessThanOrEqual(8);
});

test("all of it is in ASCII", () => {
  const files = readdirSync(DIST, { recursive: true, encoding: "utf8" }).filter((path) => /\.c?js$/.test(path));
  expect(files.filter((path) => readFileSync(join(DIST, path)).some((byte) => byte > 0x7f))).toEqual([]);
});

test("traces tell the place in src/, for who asks node for it", async () => {
  const trace = await new Promise<string>((resolve) => {
    const args = ["--enable-source-maps", join(DIST, "daemon/main.js")];
    execFile(process.execPath, args, { env: {} }, (_error, _stdout, stderr) => resolve(stderr));
  });
  expect(trace).toMatch(/ at readSettings \(\S*\/src\/daemon\/settings\.ts:\d+:\d+\)/);
});
