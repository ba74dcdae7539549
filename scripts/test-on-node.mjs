/**
 * `npm run test-on-node [-- MAJOR [vitest's arguments]]`: the tests below, or those that are named, with another release of
 * Node (24 when absent) and whichever SQLite there is for it. The last line is, alone, `N passed, M failed, K skipped`; where
 * that Node cannot be had, a line before it says so, and one test counts as skipped.
 */
import { otherNode, RELEASES } from "./other-node.mjs";
import { runTests, tellCounts } from "./run-tests.mjs";
import { projectFolder, setup } from "./setup.mjs";

/** The tests of all that depends on the runtime: SQLite, native parts, files, threads, processes; and mounts that end and begin again. */
const TESTS = [
  "test/content/",
  "test/fuse/",
  "test/lib/",
  "test/metadata/",
  "test/engine/host/",
  "test/engine/start/",
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
  tellCounts({ passed: 0, failed: 0, skipped: 1 });
  process.exitCode = 0;
} else {
  const counts = await runTests(projectFolder, given.length > 0 ? given : TESTS, { node: path });
  if (counts === undefined) process.exitCode = 2;
  else tellCounts(counts);
}
