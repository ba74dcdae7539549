/** A script comes with what it was compiled to, or without: it is the same one. Each time in a process of its own, as one remembers. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { cacheOf } from "../../src/lib/code-cache.ts";

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const PROGRAM = `
  const [loader, script] = process.argv.slice(1);
  const { loaded, loadScript } = await import(loader);
  const { sum } = loadScript(new URL(script))({ one: 1 });
  const answer = sum(2);
  const [compiled] = loaded.values();
  const { cachedDataRejected: isRefused } = compiled;
  console.log(JSON.stringify({ answer, isRefused, data: compiled.createCachedData().toString("base64") }));`;

interface Ran {
  readonly answer: number;
  /** Undefined: it was not even looked at. */
  readonly isRefused?: boolean;
  readonly data: string;
}

let folder: string;
let script: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-code-"));
  script = join(folder, "sum.cjs");
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(sum: string): void {
  writeFileSync(script, `module.exports = ({ one }) => { return { sum: (other) => ${sum} }; };\n`);
}

/** `change`: what happens to the file. `node`: which one has written it; absent: this one. */
function writeCache({ data }: Ran, change = (cache: Uint8Array) => cache, node?: string): void {
  const cache = cacheOf(readFileSync(script), Buffer.from(data, "base64"), node);
  writeFileSync(join(folder, "sum.cache"), change(cache));
}

function run(...flags: string[]): Ran {
  const urls = [at("src/lib/code-cache.ts"), script].map((path) => pathToFileURL(path).href);
  const types = ["--import", at("scripts/typescript.mjs"), "--input-type=module"];
  const text = execFileSync(process.execPath, [...flags, ...types, "--eval", PROGRAM, ...urls], { encoding: "utf8" });
  return JSON.parse(text) as Ran;
}

it("takes what the build made of it", () => {
  write("one + other");
  const first = run();
  expect([first.answer, first.isRefused]).toEqual([3, undefined]);
  writeCache(first);
  expect(run()).toMatchObject({ answer: 3, isRefused: false });
});

it("passes over what was made of another script, though that was as long", () => {
  write("one + other");
  writeCache(run());
  write("one * other");
  const { answer, isRefused } = run();
  expect([answer, isRefused]).toEqual([2, undefined]);
});

it.each<[string, (cache: Uint8Array) => Uint8Array]>([
  ["cut off", (cache) => cache.subarray(0, 100)],
  ["cut off before there is anything", (cache) => cache.subarray(0, 10)],
  ["empty", () => new Uint8Array(0)],
  ["something else", () => new Uint8Array(5000).fill(7)],
  ["changed at one place", (cache) => cache.with(200, (cache[200] ?? 0) ^ 1)],
  ["full of zeros at its end", (cache) => Uint8Array.from(cache).fill(0, 200)],
])("passes over what is damaged: %s", (_what, change) => {
  write("one + other");
  writeCache(run(), change);
  const { answer, isRefused } = run();
  expect([answer, isRefused]).toEqual([3, undefined]);
});

it("passes over what another Node has written, whether V8 would take it or not", () => {
  write("one + other");
  writeCache(run(), undefined, "v20.0.0 x64 1");
  const { answer, isRefused } = run();
  expect([answer, isRefused]).toEqual([3, undefined]);
});

it("compiles it where V8 refuses what is beside it, as one with other flags does", () => {
  write("one + other");
  writeCache(run());
  expect(run("--no-opt")).toMatchObject({ answer: 3, isRefused: true });
});
