/** A build that takes the place of another one while programs start. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** What the programs need there, once they are run. */
const BESIDE = ["native", "node_modules", "package.json"];

/** Of the build before. */
const GONE = ["gone.js", "gone.cjs", "gone.cache"];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-bundle-"));
  for (const name of BESIDE) symlinkSync(join(PROJECT, name), join(folder, name));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("leaves whoever reads a file of the one before with all of that", { timeout: 60_000 }, () => {
  const dist = join(folder, "dist");
  const file = join(dist, "daemon/bundle.cjs");
  const before = "before\n".repeat(100_000);
  mkdirSync(join(dist, "daemon"), { recursive: true });
  writeFileSync(file, before);
  for (const name of GONE) writeFileSync(join(dist, "daemon", name), before);
  const reader = openSync(file, "r");
  try {
    execFileSync(process.execPath, [join(PROJECT, "scripts/bundle.mjs"), join(PROJECT, "src"), dist]);
    expect(readFileSync(reader, "utf8") === before).toBe(true);
  } finally {
    closeSync(reader);
  }
  expect(readFileSync(file, "utf8")).toContain("about to listen");
  const licenses = readFileSync(join(dist, "THIRD-PARTY-LICENSES"), "utf8");
  for (const name of ["undici", "zod", "yargs", "better-sqlite3"])
    expect(licenses).toMatch(new RegExp(`^${name} \\d`, "m"));
  expect(licenses).toContain("Permission is hereby granted");
  expect(readdirSync(folder).sort()).toEqual(["dist", ...BESIDE].sort());
  expect(readdirSync(join(dist, "daemon")).filter((name) => GONE.includes(name))).toEqual([]);
  expect(existsSync(join(dist, "daemon/bundle.cache"))).toBe(true);
});
