/**
 * Runs vitest on the tests of a project folder and counts them, for test.mjs, sanitise.mjs and test-on-node.mjs.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runNode } from "./child.mjs";

/** `args`: vitest's; `node`: the program that runs it. Answers how many tests passed, failed and were skipped; undefined: vitest did not take the arguments. */
export async function runTests(folder, args, { env = process.env, node = process.execPath } = {}) {
  const temporary = mkdtempSync(join(tmpdir(), "wsfs-test-"));
  const countsFile = join(temporary, "counts.json");
  let refused;
  const onStderr = (chunk) => {
    // Told with a stack, before anything else is.
    refused ??= /^CACError: (.+)$/m.exec(chunk)?.[1];
    if (refused === undefined) process.stderr.write(chunk);
  };
  const vitest = join(folder, "node_modules/vitest/vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=./scripts/test-counts.mjs"];
  const status = await runNode(
    [vitest, "run", "--config=test/vitest.config.ts", ...reporters, ...args],
    { cwd: folder, stdio: ["ignore", "inherit", "pipe"], env: { ...env, WSFS_TEST_COUNTS: countsFile } },
    onStderr,
    node,
  );
  if (refused !== undefined) process.stderr.write(`test: ${refused}; "npm test -- --help" shows what there is\n`);

  let counts = { passed: 0, failed: 0, skipped: 0 };
  try {
    counts = JSON.parse(readFileSync(countsFile, "utf8"));
  } catch {
    if (refused === undefined) process.stderr.write("test: vitest ended without a result\n");
  }
  rmSync(temporary, { recursive: true, force: true });
  // Whatever made vitest fail without a failed test (it died, no file was found) counts as one.
  if (status !== 0) counts.failed ||= 1;
  return refused === undefined ? counts : undefined;
}

/** The last line, alone, and the exit code: not zero when a test failed or none ran. */
export function tellCounts({ passed, failed, skipped }) {
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
