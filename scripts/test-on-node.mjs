/**
 * `npm run test-on-node [-- MAJOR [vitest's arguments]]`: the fast tests and the further ones below, or those that are named, with
 * another release of Node (24 when absent) and whichever SQLite there is for it. The last line is, alone, `N passed, M failed,
 * K skipped`; where that Node cannot be had, a line before it says so, and one test counts as skipped.
 */
import { otherNode, RELEASES } from "./other-node.mjs";
import { runTests, tellCounts } from "./run-tests.mjs";
import { projectFolder, setup } from "./setup.mjs";

/**
 * Tests of parts that depend on the runtime, which take longer than fast tests may: SQLite, native parts, files, threads; and a mount
 * that ends and begins again.
 */
const FURTHER = [
  "test/content/dirty-log",
  "test/content/hash-workers",
  "test/content/layout",
  "test/content/reserve",
  "test/content/state-disk",
  "test/daemon/checkpoints",
  "test/daemon/open-metadata",
  "test/gateway/migration",
  "test/gateway/store",
  "test/lib/code-cache",
  "test/metadata/commit-log",
  "test/metadata/folder-counts",
  "test/mount/there-again",
];

const [major = "24", ...given] = process.argv.slice(2);
if (!(major in RELEASES)) {
  process.stderr.write(`test-on-node: expected one of ${Object.keys(RELEASES).join(", ")}, got "${major}"\n`);
  process.exit(2);
}
await setup({ forTests: true });
const { path, missing } = otherNode(major);
if (path === undefined) {
  process.stderr.write(`test-on-node: skipped, ${missing}\n`);
  tellCounts({ passed: 0, failed: 0, skipped: 1 });
  process.exitCode = 0;
} else {
  const fast = { args: [], env: { ...process.env, WSFS_TESTS: "fast" } };
  const sum = { passed: 0, failed: 0, skipped: 0 };
  let isRefused = false;
  for (const { args, env } of given.length > 0 ? [{ args: given }] : [fast, { args: FURTHER }]) {
    const counts = await runTests(projectFolder, args, { env, node: path });
    isRefused ||= counts === undefined;
    for (const outcome of Object.keys(sum)) sum[outcome] += counts?.[outcome] ?? 0;
  }
  if (isRefused) process.exitCode = 2;
  else tellCounts(sum);
}
