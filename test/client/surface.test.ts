/** What a program gets that imports `wsfs/client`: its own types only, and little to load. Needs the package built (dist/). */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const entry = fileURLToPath(new URL("../../dist/client/index", import.meta.url));

/** Every package reached by imports of the given form, from file to file. */
function packagesFrom(start: string, ending: ".js" | ".d.ts", least: number, imports: RegExp): Map<string, string> {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  const visit = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    const text = readFileSync(path, "utf8").replace(/\/\*.*?\*\//gs, "");
    for (const [, specifier = ""] of text.matchAll(imports)) {
      if (!specifier.startsWith(".")) packages.set(specifier, path);
      else visit(join(dirname(path), specifier).replace(/\.[jt]s$/, ending));
    }
  };
  visit(start + ending);
  expect(seen.size).toBeGreaterThan(least);
  return packages;
}

test("importing it loads nothing but Node's own modules", () => {
  // import … from "x", export … from "x", import "x"; not import("x"), which is loaded when it is called.
  const loaded = packagesFrom(entry, ".js", 1, /^(?:import|export)\b(?:[^;"'()=]*\bfrom)?\s*["']([^"']+)["']/gm);
  const foreign = [...loaded].filter(([specifier]) => !specifier.startsWith("node:"));
  expect(foreign).toEqual([]);
});

test("its types speak of no HTTP library", () => {
  const spoken = packagesFrom(entry, ".d.ts", 10, /(?:\bfrom\s*|\bimport\s*\(?\s*)["']([^"']+)["']/g);
  const foreign = [...spoken.keys()].filter((specifier) => !specifier.startsWith("node:"));
  // Resources are inferred from the contract's schemas.
  expect(foreign).toEqual(["zod"]);
});

test("the package's exports lead to it", () => {
  const { exports } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    exports: { "./client": { types: string; default: string } };
  };
  const { types, default: code } = exports["./client"];
  for (const path of [types, code]) expect(existsSync(new URL(`../../${path}`, import.meta.url))).toBe(true);
  expect([types, code]).toEqual(["./dist/client/index.d.ts", "./dist/client/index.js"]);
});
