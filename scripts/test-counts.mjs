/**
 * A vitest reporter that counts single tests over all files and leaves the counts as JSON in the
 * file named by WSFS_TEST_COUNTS, for test.mjs. An error that belongs to no test (a file that does
 * not load, a hook that fails, a rejection nobody caught) counts as one failed test.
 *
 * A file that blocks its process cannot be stopped by vitest's own limits. After LIMIT_MS the run ends:
 * the file is named, it counts as one failed test, and so does every test that has not ended.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

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
    leave(modules, unhandledErrors.length);
  }

  #end({ relativeModuleId }) {
    process.stderr.write(`test: ${relativeModuleId} has not ended after ${LIMIT_MS / 60_000} minutes; the run ends\n`);
    // ps shows what the blocked process waits for, and which of its programs are still there.
    spawnSync("ps", ["-eo", "pid,ppid,stat,wchan:24,time,args", "--forest", "--cols=200"], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    leave(this.#modules, 1);
    // A blocked process would never handle SIGTERM.
    for (const pid of children()) process.kill(pid, "SIGKILL");
    process.exit(1);
  }
}

function leave(modules, errors) {
  const counts = { passed: 0, failed: errors, skipped: 0 };
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

function children() {
  const path = `/proc/self/task/${process.pid}/children`;
  return readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number);
}
