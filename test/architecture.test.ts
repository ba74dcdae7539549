/**
 * The rules of src/README.md hold for every file of the project, and each rule finds what it is
 * there to find.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { circles, codeOf, importsOf } from "./support/imports.ts";
import { longFileViolations, type Project, RULES } from "./support/rules.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function readProject(): Project {
  // What is committed, and what is about to be.
  const git = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const paths = execFileSync("git", git, { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
  const gone = new Set(
    execFileSync("git", ["ls-files", "-z", "--deleted"], { cwd: root, encoding: "utf8" }).split("\0"),
  );
  const texts = paths.filter((path) => !gone.has(path)).map((path): [string, string] => [path, readText(path)]);
  return new Map(texts);
}

function readText(path: string): string {
  const text = readFileSync(join(root, path), "utf8");
  return text.includes("\0") ? "" : text; // not a text
}

/** For each rule: a file that breaks it, and the same file put right. */
const examples: Record<keyof typeof RULES, [path: string, wrong: string, right: string][]> = {
  "imports go down": [
    ["src/engine/api/a.ts", 'import type { A } from "../../fuse/a.ts";', 'import type { A } from "../../client/a.ts";'],
    ["src/metadata/a.ts", 'export * from "../content/a.ts";', 'export * from "../contract/a.ts";'],
    ["src/gateway/a.ts", 'const a = await import("../metadata/a.ts");', 'const a = await import("./a/b.ts");'],
    ["src/lib/a.ts", 'type A = import("../contract/a.ts").A;', '// see "../contract/a.ts"'],
    ["src/cli/a.ts", 'import "../../scripts/a.mjs";', 'import "node:fs";'],
    ["src/extra/a.ts", 'import "../lib/a.ts";', ""],
    ["src/engine/files/a.ts", 'import "../tree/index.ts";', 'import "../core/index.ts"; import "./b.ts";'],
    ["src/engine/files/a.ts", 'import "../core/context.ts";', 'import "../api/index.ts";'],
    ["src/engine/files/a.ts", 'import "./index.ts";', ""],
    ["src/engine/extra/a.ts", 'import "../api/index.ts";', ""],
    ["src/engine/files/extra/a.ts", 'import "../b.ts";', ""],
    ["src/daemon/a.ts", 'import "../engine/ops/index.ts";', 'import "../engine/api/index.ts";'],
    ["src/daemon/a.ts", 'import "../engine/start/start-engine.ts";', 'import "../engine/start/index.ts";'],
  ],
  "tests go through doors": [
    [
      "test/sim/a.test.ts",
      'import { a } from "../../src/engine/sync/plan.ts";',
      'import { a } from "../../src/engine/sync/index.ts"; import { b } from "../../src/metadata/inodes.ts";',
    ],
    ["test/engine/a.ts", 'type A = import("../../src/engine/files/evict.ts").A;', 'import "../support/a.ts";'],
    [
      "test/engine/files/a.test.ts",
      'import type { A } from "../../../src/engine/tree/stat.ts";',
      'import { a } from "../../../src/engine/files/evict.ts";',
    ],
    [
      "test/engine/files/a.ts",
      'export {\n  a,\n} from "../../../src/engine/files/evict.ts";',
      'export { a } from "../../../src/engine/tree/index.ts";',
    ],
    ["test/support/a.mjs", 'await import("../../src/engine/start/recover.ts");', ""],
  ],
  "hooks are the test files' own": [
    ["test/native/a.ts", "afterEach(() => end());", "export function a() {\n  onTestFinished(end);\n}"],
    ["test/support/a.ts", "beforeAll(begin);", "export function a() {\n  afterEach(end);\n}"],
  ],
  "no imports in a circle": [
    ["src/lib/a.ts", 'import type { A } from "./a.ts";', 'import type { A } from "./b.ts";'],
    [
      "src/lib/b.ts",
      'export { a } from "./a.ts"; import "./c/b.ts";//\nexport { a } from "./b.ts";',
      'import "./c.ts"',
    ],
  ],
  "packages have owners": [
    ["src/engine/a.ts", 'import { Pool } from "undici";', "export const undici = 1;"],
    ["src/contract/a.ts", 'import type { CookieSerializeOptions } from "@fastify/cookie";', 'import { z } from "zod";'],
    ["src/client/a.ts", 'import fastify from "fastify";', 'import { Pool } from "undici";'],
    ["src/daemon/a.ts", 'const yargs = await import("yargs");', ""],
  ],
  "SQLite has one door and two users": [
    [
      "src/gateway/a.ts",
      'import Database from "better-sqlite3";',
      'import { openSqlite } from "../lib/sqlite/index.ts";',
    ],
    ["src/metadata/a.ts", 'import { rowMaker } from "../lib/sqlite/row-maker.ts";', 'import { a } from "./sqlite.ts";'],
    [
      "src/daemon/a.ts",
      'import { SqliteError } from "../lib/sqlite/index.ts";',
      'import { a } from "../metadata/a.ts";',
    ],
  ],
  "the addon has one door and three users": [
    ["src/fuse/session.ts", 'import { addon } from "../lib/addon.ts";', 'import { open } from "./native.ts";'],
    ["src/daemon/a.ts", 'require("../../native/build/Release/wsfs.node");', 'import "node:fs";'],
  ],
  "the optional library has one door, and is loaded when it is asked for": [
    ["src/daemon/a.ts", 'const a = await import("fuse-native");', 'import { a } from "../fuse-native/library.ts";'],
    ["src/fuse-native/library.ts", 'import a from "fuse-native";', 'import type a from "fuse-native";'],
  ],
  "metadata is synchronous": [
    ["src/metadata/a.ts", "export async function a() {}", "// never async\nexport function a() {}"],
    ["src/metadata/b.ts", "let a: Promise<void>;", 'const a = "Promise";'],
  ],
  "clock, timers, chance, environment and files come from outside": [
    ["src/engine/a.ts", "const a = Date.now();", "const a = runtime.now();"],
    ["src/contract/a.ts", "const a = new Date();", "const a = new Date(0);"],
    ["src/content/a.ts", 'import { open } from "node:fs/promises";', 'import type { Files } from "../lib/files.ts";'],
    ["src/metadata/a.ts", "const a = process.env.HOME ?? Math.random();", "// not process.env"],
    ["src/content/disk-files.ts", "setTimeout(a, 1);", 'import { open } from "node:fs/promises";'],
  ],
  "limits of queries are numbers or expressions": [
    ["src/metadata/a.ts", 'const a = "SELECT id FROM a LIMIT ?";', 'const a = "SELECT id FROM a LIMIT +?";'],
    ["src/gateway/a.ts", 'const a = "SELECT id FROM a LIMIT @limit";', 'const a = "SELECT id FROM a LIMIT 20";'],
    [
      "src/gateway/b.ts",
      'const a = "SELECT id FROM a LIMIT 1 OFFSET ?";',
      'const a = "SELECT id FROM a LIMIT 1 OFFSET +?";',
    ],
  ],
  // The files of its list are in no other project: see below.
  "a long file has a reason": [],
  "an exported duration has a name of its own": [
    ["src/lib/a.ts", "export const A_MS = 1;\nconst A_MS = 2;", "export const A_MS = 1;\nconst B_MS = 2;"],
    ["src/engine/a.ts", "const A_SECONDS = 1;\nexport const A_SECONDS = 1;", "const A_MS = 1;\nconst A_MS = 2;"],
  ],
  "types are checked": [
    ["src/lib/a.ts", "let a: any = 1;", "let a: unknown = 1; // of any kind"],
    ["test/a.test.ts", "const a = b as any[];", "const a = AbortSignal.any([b]);"],
    ["src/lib/b.ts", `// @ts-${"ignore"}\na();`, "a();"],
  ],
  "every source file says first what it is": [
    ["src/lib/a.ts", 'import "./b.ts";\n/** A. */', '/** A. */\nimport "./b.ts";'],
    ["src/cli/main.ts", '#!/usr/bin/env node\nimport "./b.ts";', '#!/usr/bin/env node\n/** A. */\nimport "./b.ts";'],
  ],
  "src/README.md names every folder": [
    [
      "src/README.md",
      "lib/ and others",
      "cli/ daemon/ fuse/ fuse-native/ gateway/ engine/ metadata/ content/ client/ contract/ lib/",
    ],
  ],
  "no path of somebody's machine": [
    ["README.md", `cd ${["", "work", "wsfs"].join("/")}`, "cd ~/work/wsfs"],
    ["test/a.test.ts", `const home = "${["", "root"].join("/")}";`, 'const a = "./root/a"; const b = "/workspace";'],
  ],
};

const project = readProject();

describe.each(Object.entries(RULES))("%s", (name, rule) => {
  test("holds", () => {
    expect(rule(project)).toEqual([]);
  });

  test.each(examples[name as keyof typeof RULES])("is seen broken in %s", (path, wrong, right) => {
    expect(rule(new Map([[path, wrong]]))).not.toEqual([]);
    expect(rule(new Map([[path, right]]))).toEqual([]);
  });
});

test("the project's files were found", () => {
  expect([...project.keys()]).toContain("src/lib/runtime.ts");
});

test.each(["src/lib/a.ts", "native/a.c"])(
  "a long %s without a reason is found, and a reason without a long file",
  (path) => {
    const [long, short] = ["a\n".repeat(600), "a\n".repeat(599)];
    const reasons = new Map([[path, "It is one idea."]]);
    expect(longFileViolations(new Map([[path, long]]), new Map())).toEqual([expect.stringContaining(path)]);
    expect(longFileViolations(new Map([[path, long]]), reasons)).toEqual([]);
    expect(longFileViolations(new Map([[path, short]]), new Map())).toEqual([]);
    expect(longFileViolations(new Map([[path, short]]), reasons)).toEqual([expect.stringContaining(path)]);
    expect(longFileViolations(new Map(), reasons)).toEqual([expect.stringContaining(path)]);
  },
);

test("a circle through several files is found, whatever kind of import closes it", () => {
  const graph = new Map([
    ["a", ["b"]],
    ["b", ["c", "d"]],
    ["c", []],
    ["d", ["a", "c"]],
  ]);
  expect(circles(graph)).toEqual([["a", "b", "d", "a"]]);
});

test("imports are read from code, not from strings, comments, templates or regular expressions", () => {
  const text = [
    'import a, { type B } from "./a.ts"; // import "./no.ts"',
    "import {\n  c,\n} from './c.ts';",
    'const s = "import \\"./no.ts\\" from"; const r = /from "x/; const half = 1 / 2; /* from "no" */',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template
    'const t = `from "no" ${await import("./d.ts")} } from "no" ${`${{ a: "from" }}`} \\${ from "no"`;',
    'export * from "./e.ts"; const list = Array.from(["no"]);',
  ].join("\n");
  expect(importsOf(text)).toEqual(["./a.ts", "./c.ts", "./d.ts", "./e.ts"]);
  expect(codeOf(text)).toHaveLength(text.length);
});
