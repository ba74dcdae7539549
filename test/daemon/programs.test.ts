/** The built programs: how much a start has to read, and that traces still tell where in src/ something was. Needs dist/. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const DIST = fileURLToPath(new URL("../../dist/", import.meta.url));
const IMPORT = /^(?:import|export)\b(?:[^;"'()=]*\bfrom )?"([^"]+)";/gm;

/** What is loaded before the program's first line runs: files below dist/, and packages. */
function loadedBy(program: string): string[] {
  const loaded = new Set<string>();
  const visit = (path: string) => {
    if (loaded.has(path)) return;
    loaded.add(path);
    if (!path.endsWith(".js")) return;
    for (const [, name = ""] of readFileSync(join(DIST, path), "utf8").matchAll(IMPORT)) {
      if (name.startsWith(".")) visit(join(dirname(path), name));
      else if (!/^(?:node:|(?:assert|fs|path|url|util)$)/.test(name)) visit(name);
    }
  };
  visit(program);
  return [...loaded].sort();
}

test("a daemon is one file, besides the clock that tests may change", () => {
  expect(loadedBy("daemon/main.js")).toEqual(["daemon/bundle.js", "daemon/main.js", "lib/system-clock.js"]);
});

test("the optional package is asked for when it is needed, and is in no file of ours", () => {
  const text = readFileSync(join(DIST, "daemon/bundle.js"), "utf8");
  expect(text.includes('import("fuse-native")')).toBe(true);
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
  expect(loaded.filter((path) => !path.startsWith("cli/") || path.includes("schemas"))).toEqual([]);
  expect(loaded.length).toBeLessThanOrEqual(8);
});

test("all of it is in ASCII", () => {
  const files = readdirSync(DIST, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".js"));
  expect(files.filter((path) => readFileSync(join(DIST, path)).some((byte) => byte > 0x7f))).toEqual([]);
});

test("traces tell the place in src/, for who asks node for it", async () => {
  const trace = await new Promise<string>((resolve) => {
    const args = ["--enable-source-maps", join(DIST, "daemon/main.js")];
    execFile(process.execPath, args, { env: {} }, (_error, _stdout, stderr) => resolve(stderr));
  });
  expect(trace).toMatch(/ at readSettings \(\S*\/src\/daemon\/settings\.ts:\d+:\d+\)/);
});
