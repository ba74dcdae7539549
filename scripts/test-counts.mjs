/**
 * A vitest reporter that counts single tests over all files and leaves the counts as JSON in the
 * file named by WSFS_TEST_COUNTS, for test.mjs. An error that belongs to no test (a file that does
 * not load, a hook that fails, a rejection nobody caught) counts as one failed test.
 */
import { writeFileSync } from "node:fs";

export default class TestCounts {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        // "pending" after the end: it was started and never finished.
        counts[state === "pending" ? "failed" : state] += 1;
      }
      for (const suite of [module, ...module.children.allSuites()]) {
        if (suite.errors().length > 0) counts.failed += 1;
      }
    }
    writeFileSync(process.env.WSFS_TEST_COUNTS, JSON.stringify(counts));
  }
}
