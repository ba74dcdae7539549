#!/usr/bin/env node
/**
 * Counts what the structure of the engine is judged by: node test/support/house.mjs [FOLDER OF A CHECKOUT].
 * A room is a folder of src/engine with an index.ts, its door; a checkout from before has rooms without doors in src/vfs.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";

const root = process.argv[2] ?? ".";
const engine = existsSync(join(root, "src/engine")) ? "src/engine" : "src/vfs";
const filesIn = (folder, ending = ".ts") =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !name.includes("node_modules"))
    .map((name) => join(folder, name));
const textOf = (path) => readFileSync(join(root, path), "utf8");
const linesOf = (paths) => paths.reduce((sum, path) => sum + textOf(path).split("\n").length, 0);

const sources = filesIn("src");
const tests = filesIn("test");
const inEngine = sources.filter((path) => path.startsWith(`${engine}/`));
const isDoor = (path) => path.startsWith(`${engine}/`) && path.endsWith("/index.ts");
const roomOf = (path) => (path.startsWith(`${engine}/`) ? dirname(relative(engine, path)) : "");
/** The room that a test is of: a test in test/engine/ROOM. */
const roomOfTest = (path) => /^test\/engine\/([^/]+)\//.exec(path)?.[1];

const FROM = /^\s*(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*[^"]*|[\w$]+)\s*from\s*"(\.[^"]+)"/gms;
function importsOf(path) {
  return [...textOf(path).matchAll(FROM)].map(([, names = "", specifier = ""]) => ({
    target: normalize(join(dirname(path), specifier)),
    names: names.startsWith("{") ? names.slice(1, -1).split(",").map(nameOf).filter(Boolean) : [],
  }));
}
const nameOf = (text) =>
  text
    .trim()
    .replace(/^type\s+/, "")
    .split(/\s+as\s+/)[0];

const DECLARED = /^export\s+(?:async\s+)?(?:function\*?|const|class|interface|type|let)\s+([\w$]+)/gm;
const declared = inEngine.flatMap((path) => [...textOf(path).matchAll(DECLARED)].map(([, name]) => `${path}#${name}`));
const users = new Map(declared.map((name) => [name, new Set()]));
/** Where a name at a door is declared. */
const behind = new Map(
  inEngine
    .filter(isDoor)
    .flatMap((door) =>
      importsOf(door).flatMap(({ target, names }) => names.map((name) => [`${door}#${name}`, `${target}#${name}`])),
    ),
);
let pastDoors = 0;
let pastDoorsInTests = 0;
let ofTheirRoom = 0;
for (const path of [...sources, ...tests]) {
  for (const { target, names } of importsOf(path)) {
    for (const name of isDoor(path) ? [] : names) {
      let at = `${target}#${name}`;
      while (behind.has(at)) at = behind.get(at);
      users.get(at)?.add(path);
    }
    const isInto = roomOf(target) !== "" && roomOf(target) !== roomOf(path) && !isDoor(target);
    if (!isInto) continue;
    if (roomOfTest(path) === roomOf(target)) ofTheirRoom += names.length;
    else if (path.startsWith("test/")) pastDoorsInTests += names.length;
    else pastDoors += names.length;
  }
}
const atDoors = inEngine.filter(isDoor).flatMap((path) => importsOf(path).flatMap(({ names }) => names));

/** Fields that can be changed, of the interface or class with most of them. Those of a class may be private. */
function largestRecord() {
  const records = inEngine.flatMap((path) =>
    [...textOf(path).matchAll(/^(?:export )?(?:interface|class) (\w+)[^{]*\{\n(.*?)^\}/gms)].map(
      ([, name, body = ""]) => ({
        name,
        fields: [...body.matchAll(/^ {2}(?!readonly |\/|\*| )#?[\w$]+(?:\??:| =)/gm)].length,
      }),
    ),
  );
  return records.toSorted((a, b) => b.fields - a.fields)[0];
}

const everything = inEngine.reduce(
  (sum, path) => sum + (textOf(path).match(/[({,]\s*\w*\}?:\s*Context\b/g)?.length ?? 0),
  0,
);
const PARTS = ["Rows", "LocalFiles", "Kernel", "Remote", "Uploads", "Host"];
const allParts = inEngine.reduce(
  (sum, path) => sum + [...textOf(path).matchAll(/:\s*(\w+(?:\s*&\s*\w+)+)/g)].filter(hasAllParts).length,
  0,
);
function hasAllParts([, annotation]) {
  const names = new Set(annotation.split(/\s*&\s*/));
  return PARTS.every((part) => names.has(part));
}
const largest = largestRecord();
const lines = {
  [`files of ${engine}`]: inEngine.length,
  [`lines of ${engine}`]: linesOf(inEngine),
  "exports of its files": declared.length,
  "exports that no other file or only one uses": [...users.values()].filter(({ size }) => size <= 1).length,
  "exports at doors": atDoors.length,
  "names imported past doors, src": pastDoors,
  "names imported past doors, test": pastDoorsInTests,
  "names that tests of a room import from in it": ofTheirRoom,
  "parameters that take all of Context": everything,
  "parameters that take all six parts": allParts,
  "largest record, fields that can be changed": `${largest?.fields} (${largest?.name})`,
  "lines of src": linesOf(sources),
  "lines of test": linesOf(tests),
};
for (const [what, count] of Object.entries(lines)) process.stdout.write(`${what.padEnd(46)} ${count}\n`);
