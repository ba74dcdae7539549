/**
 * A vitest reporter that counts single tests over all files and leaves the counts as JSON in the
 * file named by WSFS_TEST_COUNTS, for test.mjs. An error that belongs to no test (a file that does
 * not load, a hook that fails, a rejection nobody caught) counts as one failed test. Each failure is
 * appended with its reason to the file named by WSFS_TEST_FAILURES, which .ci/run shows at its end.
 *
 * A file that blocks its process cannot be stopped by vitest's own limits. After LIMIT_MS the run ends:
 * the file is named, it counts as one failed test, and so does every test that has not ended.
 */
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";

/** The longest file takes about two minutes. WSFS_TEST_LIMIT_MS is for the test of this. */
const LIMIT_MS = Number(process.env.WSFS_TEST_LIMIT_MS ?? 15 * 60_000);

export default class TestCounts {
  #modules = new Set();
  /** By the file that is under way. */
  #limits = new Map();

  onTestModuleQueued(module) {
    this.#limits.set(
      module.moduleId,
      setTimeout(() => this.#end(module), LIMIT_MS),
    );
  }

  onTestModuleCollected(module) {
    this.#modules.add(module);
  }

  onTestModuleEnd({ moduleId }) {
    clearTimeout(this.#limits.get(moduleId));
  }

  onTestRunEnd(modules, unhandledErrors) {
    leave(modules, unhandledErrors);
  }

  #end({ relativeModuleId }) {
    const message = `${relativeModuleId} has not ended after ${LIMIT_MS / 60_000} minutes; the run ends`;
    process.stderr.write(`test: ${message}\n`);
    // ps shows what the blocked process waits for, and which of its programs are still there.
    spawnSync("ps", ["-eo", "pid,ppid,stat,wchan:24,time,args", "--forest", "--cols=200"], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    leave(this.#modules, [{ message }]);
    // A blocked process would never handle SIGTERM.
    for (const pid of children()) process.kill(pid, "SIGKILL");
    process.exit(1);
  }
}

function leave(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const error of unhandledErrors) tellFailure("outside of a test", [error]);
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state, errors = [] } = test.result();
      // "pending" after the end: it was started and never finished.
      const ended = state === "pending" ? "failed" : state;
      counts[ended] += 1;
      if (ended === "failed") tellFailure(`${module.relativeModuleId} > ${test.fullName}`, errors);
    }
    for (const suite of [module, ...module.children.allSuites()]) {
      const errors = suite.errors();
      if (errors.length === 0) continue;
      counts.failed += 1;
      tellFailure(
        suite === module ? module.relativeModuleId : `${module.relativeModuleId} > ${suite.fullName}`,
        errors,
      );
    }
  }
  writeFileSync(process.env.WSFS_TEST_COUNTS, JSON.stringify(counts));
}

/** Appends a failure to the file named by WSFS_TEST_FAILURES. A test that has not ended has no errors. */
export function tellFailure(name, errors) {
  if (process.env.WSFS_TEST_FAILURES === undefined) return;
  const told = errors.map(({ message, diff, stack }) => [message, diff, stack].filter(Boolean).join("\n"));
  appendFileSync(process.env.WSFS_TEST_FAILURES, `failed: ${name}\n${told.join("\n") || "it has not ended"}\n\n`);
}

function children() {
  const path = `/proc/self/task/${process.pid}/children`;
  return readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number);
}
