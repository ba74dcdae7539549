/** What `npm test` is told and says before a test runs. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "./child.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const COMMAND = join(ROOT, "scripts/test.mjs");

test("a flag that is mistyped is one line", async () => {
  const { code, stdout, stderr } = await run(process.execPath, [COMMAND, "--fsat"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toBe('test: Unknown option `--fsat`; "npm test -- --help" shows what there is\n');
});

test("--help says what may be given, and runs nothing", async () => {
  const { code, stdout, stderr } = await run(process.execPath, [COMMAND, "--help"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("npm test -- --fast");
});

test("a file that blocks its process ends the run: it is named, and is a failure", async () => {
  const folder = await temporaryFolder();
  const test = (name: string, body: string) =>
    writeFileSync(
      join(folder, `${name}.test.mjs`),
      `import { test } from "vitest";\ntest("${name}", () => {${body}});\n`,
    );
  test("a-good", "");
  test("b-blocks", "for (;;);");
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const counts = join(folder, "counts.json");
  const reporter = join(ROOT, "scripts/test-counts.mjs");
  const env = { ...process.env, WSFS_TEST_COUNTS: counts, WSFS_TEST_LIMIT_MS: "6000" };
  const args = [
    join(ROOT, "node_modules/vitest/vitest.mjs"),
    "run",
    `--root=${folder}`,
    `--reporter=${reporter}`,
    "--maxWorkers=2",
  ];
  const { code, stderr } = await run(process.execPath, args, { env });
  expect([code, stderr]).toEqual([1, "test: b-blocks.test.mjs has not ended after 0.1 minutes; the run ends\n"]);
  expect(JSON.parse(readFileSync(counts, "utf8"))).toMatchObject({ passed: 1, skipped: 0 });
  expect(JSON.parse(readFileSync(counts, "utf8")).failed).toBeGreaterThan(0);
});
