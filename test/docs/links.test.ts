/**
 * Every page is true about where things are: relative links and their anchors lead somewhere, paths that are named are
 * there, and each page of docs/ is reached from the README.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const at = (path: string) => posix.join(ROOT, path);

interface Page {
  readonly path: string;
  /** Without blocks of code. */
  readonly text: string;
}

/** Tracked or new, not ignored. */
function filesOf(...patterns: string[]): string[] {
  const git = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...patterns];
  const listed = execFileSync("git", git, { cwd: ROOT, encoding: "utf8" });
  return [...new Set(listed.split("\0"))].filter((path) => path !== "" && existsSync(at(path)));
}

const read = (path: string) => readFileSync(at(path), "utf8");

const withoutCode = (text: string) => text.replace(/^```.*?^```$/gms, "");

/** Targets of links, without a title. Code within a line holds none. */
function linksOf(text: string): string[] {
  return [...text.replace(/`[^`\n]*`/g, "`").matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
}

/** As GitHub makes them of headings. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-");
    let free = slug;
    for (let count = 1; anchors.has(free); count += 1) free = `${slug}-${count}`;
    anchors.add(free);
  }
  return anchors;
}

/** The path in the project that a link of a page leads to, and the anchor there; undefined: it leads elsewhere. */
function targetOf(page: string, link: string): { path: string; anchor: string } | undefined {
  if (/^[a-z]+:/i.test(link)) return undefined;
  const [file = "", anchor = ""] = link.split("#");
  const path = file === "" ? page : posix.join(posix.dirname(page), file);
  return { path: path.replace(/\/$/, ""), anchor };
}

function faultsOf({ path, text }: Page, textAt: (path: string) => string | undefined): string[] {
  return linksOf(text).flatMap((link) => {
    const target = targetOf(path, link);
    if (target === undefined) return [];
    const there = textAt(target.path);
    if (there === undefined) return [`${path}: ${link} leads to nothing`];
    if (target.anchor === "" || anchorsOf(there).has(target.anchor)) return [];
    return [`${path}: ${link} names no heading`];
  });
}

/** Of a folder: nothing. Undefined: it is not there. */
function textAt(path: string): string | undefined {
  if (path.startsWith("..") || !existsSync(at(path))) return undefined;
  return statSync(at(path)).isDirectory() ? "" : withoutCode(read(path));
}

/** Paths of the project that a page names as code. Those with a placeholder or a pattern are none. */
function pathsNamedIn(text: string): string[] {
  const named = [...text.matchAll(/`((?:src|native|test|scripts|docs)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
  return named.map((path) => path.replace(/\/$/, ""));
}

const isThere = (path: string) => ["", ".ts", ".test.ts"].some((end) => existsSync(at(path + end)));

const pages = filesOf("*.md").map((path): Page => ({ path, text: withoutCode(read(path)) }));

test("relative links lead to files and headings that are there", () => {
  expect(pages.map(({ path }) => path)).toEqual(expect.arrayContaining(["README.md", "docs/README.md", "docs/sdk.md"]));
  expect(pages.flatMap((page) => faultsOf(page, textAt))).toEqual([]);
});

test("paths that pages name are there", () => {
  // What a release changed is told with the names of that time.
  const present = pages.filter(({ path }) => path !== "CHANGELOG.md");
  const wrong = present.flatMap(({ path, text }) =>
    pathsNamedIn(text)
      .filter((named) => !isThere(named))
      .map((named) => `${path}: ${named}`),
  );
  expect(wrong).toEqual([]);
});

test("pages that comments of the source name are there", () => {
  const sources = filesOf("*.ts", "*.mjs", "*.c", "*.h").filter((path) => path !== "test/docs/links.test.ts");
  const wrong = sources.flatMap((path) =>
    [...read(path).matchAll(/(?<![\w/])(?:src|docs)\/[\w./-]+\.md\b/g)]
      .filter(([named]) => !existsSync(at(named)))
      .map(([named]) => `${path}: ${named}`),
  );
  expect(wrong).toEqual([]);
});

test("each page of docs/ is reached from the README", () => {
  const reached = new Set(["README.md"]);
  for (const path of reached) {
    const page = pages.find((one) => one.path === path);
    for (const link of page === undefined ? [] : linksOf(page.text)) {
      const target = targetOf(path, link);
      if (target?.path.endsWith(".md") === true) reached.add(target.path);
    }
  }
  const alone = pages.map(({ path }) => path).filter((path) => path.startsWith("docs/") && !reached.has(path));
  expect(alone).toEqual([]);
});

test("a link that leads to nothing, or to no heading, is seen", () => {
  const texts = new Map([
    ["docs/a.md", "# A page, with `code`\n\n## Twice\n\n## Twice\n"],
    ["docs/folder", ""],
  ]);
  const of = (text: string) => faultsOf({ path: "docs/b.md", text: withoutCode(text) }, (path) => texts.get(path));
  expect(of("[a](a.md) [b](a.md#a-page-with-code) [c](a.md#twice-1) [d](folder/) [e](https://x.example/)")).toEqual([]);
  expect(of("```\n[a](none.md)\n```\n`[a](none.md)`")).toEqual([]);
  expect(of("[a](none.md) [b](../docs/a.md#none)")).toEqual([
    "docs/b.md: none.md leads to nothing",
    "docs/b.md: ../docs/a.md#none names no heading",
  ]);
  expect(pathsNamedIn("`src/lib/runtime.ts`, `src/…`, `test/<folder>`, `src/lib/`")).toEqual([
    "src/lib/runtime.ts",
    "src/lib",
  ]);
});
