/**
 * `npm run test-on-node [-- MAJOR [vitest's arguments]]`: the tests below, or those that are named, with another release of
 * Node (24 when absent) and whichever SQLite there is for it. The last line is, alone, `N passed, M failed, K skipped`; where
 * that Node cannot be had, a line before it says so, and one test counts as skipped.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { otherNode, RELEASES } from "./other-node.mjs";
import { projectFolder, setup } from "./setup.mjs";

/** What depends on the runtime: SQLite, native parts, files, threads, processes; and mounts that end and begin again. */
const TESTS = [
  "test/content/",
  "test/contract/",
  "test/fuse/",
  "test/lib/",
  "test/metadata/",
  "test/vfs/",
  "test/daemon/checkpoints",
  "test/daemon/open-metadata",
  "test/gateway/migration",
  "test/gateway/nodes",
  "test/gateway/store",
  "test/mount/there-again",
];

const [major = "24", ...given] = process.argv.slice(2);
if (!(major in RELEASES)) {
  process.stderr.write(`test-on-node: expected one of ${Object.keys(RELEASES).join(", ")}, got "${major}"\n`);
  process.exit(2);
}
setup({ forTests: true });
const { path, missing } = otherNode(major);
if (path === undefined) {
  process.stderr.write(`test-on-node: skipped, ${missing}\n`);
  tell({ passed: 0, failed: 0, skipped: 1 });
} else {
  const counts = run(path);
  tell(counts);
  process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;
}

function run(node) {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
  const countsFile = join(folder, "counts.json");
  const vitest = join(projectFolder, "node_modules/vitest/vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=./scripts/test-counts.mjs"];
  const tests = given.length > 0 ? given : TESTS;
  const { status } = spawnSync(node, [vitest, "run", "--config=test/vitest.config.ts", ...reporters, ...tests], {
    cwd: projectFolder,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, WSFS_TEST_COUNTS: countsFile },
  });
  let counts = { passed: 0, failed: 0, skipped: 0 };
  try {
    counts = JSON.parse(readFileSync(countsFile, "utf8"));
  } catch {
    process.stderr.write("test-on-node: vitest ended without a result\n");
  }
  rmSync(folder, { recursive: true });
  // Whatever made vitest fail without a failed test (it died, no file was found) counts as one.
  if (status !== 0) counts.failed ||= 1;
  return counts;
}

function tell({ passed, failed, skipped }) {
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
}
