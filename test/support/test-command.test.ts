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

/** Runs the reporter on a file of each test: its name and body. */
async function reported(tests: Readonly<Record<string, string>>, limits: Readonly<Record<string, string>> = {}) {
  const folder = await temporaryFolder();
  for (const [name, body] of Object.entries(tests)) {
    const text = `import { expect, test } from "vitest";\ntest("${name}", () => {${body}});\n`;
    writeFileSync(join(folder, `${name}.test.mjs`), text);
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const [counts, failures] = [join(folder, "counts.json"), join(folder, "failures")];
  const reporter = join(ROOT, "scripts/test-counts.mjs");
  const env = { ...process.env, WSFS_TEST_COUNTS: counts, WSFS_TEST_FAILURES: failures, ...limits };
  const args = [
    join(ROOT, "node_modules/vitest/vitest.mjs"),
    "run",
    `--root=${folder}`,
    `--reporter=${reporter}`,
    "--maxWorkers=2",
  ];
  const { code, stderr } = await run(process.execPath, args, { env });
  const text = (path: string) => readFileSync(path, "utf8");
  return { code, stderr, counts: JSON.parse(text(counts)), failures: text(failures) };
}

test("a file that blocks its process ends the run: it is named, and is a failure", async () => {
  const { code, stderr, counts, failures } = await reported(
    { "a-good": "", "b-blocks": "for (;;);" },
    { WSFS_TEST_LIMIT_MS: "6000" },
  );
  const said = "b-blocks.test.mjs has not ended after 0.1 minutes; the run ends";
  expect([code, stderr]).toEqual([1, `test: ${said}\n`]);
  expect(counts).toMatchObject({ passed: 1, skipped: 0 });
  expect(counts.failed).toBeGreaterThan(0);
  expect(failures).toContain(`failed: outside of a test\n${said}\n`);
});

test("what failed is kept, with the reason, for the end of a run of several parts", async () => {
  const { code, counts, failures } = await reported({ "a-good": "", "b-bad": 'expect("is").toBe("right");' });
  expect([code, counts]).toEqual([1, { passed: 1, failed: 1, skipped: 0 }]);
  expect(failures).toMatch(/^failed: b-bad\.test\.mjs > b-bad\nexpected 'is' to be 'right'.*b-bad\.test\.mjs:2/s);
  expect(failures).not.toContain("a-good");
});
