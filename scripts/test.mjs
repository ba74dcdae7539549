/**
 * `npm test [-- vitest's arguments]`: set-up, then all tests. The last line is, alone,
 * `N passed, M failed, K skipped`; not zero when a test failed or none ran.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runNode } from "./child.mjs";
import { projectFolder, setup } from "./setup.mjs";

setup({ forTests: true });

const folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
const countsFile = join(folder, "counts.json");
const status = await runNode(
  [
    join(projectFolder, "node_modules/vitest/vitest.mjs"),
    "run",
    "--config=test/vitest.config.ts",
    "--reporter=default",
    "--reporter=./scripts/test-counts.mjs",
    ...process.argv.slice(2),
  ],
  {
    cwd: projectFolder,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, WSFS_TEST_COUNTS: countsFile },
  },
);

let counts = { passed: 0, failed: 0, skipped: 0 };
try {
  counts = JSON.parse(readFileSync(countsFile, "utf8"));
} catch {
  process.stderr.write("test: vitest ended without a result\n");
}
rmSync(folder, { recursive: true, force: true });

// Whatever made vitest fail without a failed test (it died, no file was found) counts as one.
if (status !== 0) counts.failed ||= 1;
const good = counts.failed === 0 && counts.passed > 0;
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
process.exitCode = good ? 0 : 1;
