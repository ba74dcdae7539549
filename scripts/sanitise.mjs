/**
 * `npm run sanitise [-- vitest's arguments]`: the tests of the native parts, on a build of them that looks for wrong uses
 * of memory (AddressSanitizer) and undefined behaviour (UndefinedBehaviorSanitizer), in which each warning of the
 * compiler is an error. The last line is that of `npm test`; a report of a sanitiser, of whichever process, is a failed test.
 *
 * The build lies in a copy of the project, whose tests find their native parts as ever. Node itself is not instrumented,
 * and the addon is loaded late: libasan comes first by LD_PRELOAD. Memory that Node leaves to the kernel at its end is no leak.
 * Where the compiler has no libasan, a line says so, and one test counts as skipped.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { runTests, tellCounts } from "./run-tests.mjs";
import { nodeHeaders, projectFolder, setup } from "./setup.mjs";
import { tellFailure } from "./test-counts.mjs";

/** These two tests compile supervisors of their own, which have no sanitisers. */
const OF_THEIR_OWN = ["supervisor-reload-trial.test.ts", "supervisor-starved.test.ts"];
const NATIVE = readdirSync(join(projectFolder, "test/native")).filter((name) => name.endsWith(".test.ts"));
/** The tests of the native parts, and the tests that use them without a mount. To other tests the build makes no difference. */
const TESTS = [
  ...NATIVE.filter((name) => !OF_THEIR_OWN.includes(name)).map((name) => `test/native/${name}`),
  "test/content/",
  "test/fuse/socketpair",
  "test/metadata/commit-log",
];

// Undefined behaviour is a trap, which libasan reports: libubsan beside it would write its reports elsewhere.
const SANITISERS = "-fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer";
// Checked copies (_FORTIFY_SOURCE) would be those of the C library, past the sanitiser's own.
const CFLAGS = `${SANITISERS} -Og -g -Werror -U_FORTIFY_SOURCE`;

const COPIED = [
  "dist",
  "docs",
  "native",
  "scripts",
  "src",
  "test",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];

await setup({ forTests: true });
const libasan = library("libasan.so");
const folder = mkdtempSync(join(tmpdir(), "wsfs-sanitise-"));
const reports = join(folder, "reports");
const copy = join(folder, "wsfs");
try {
  if (libasan === undefined) {
    process.stderr.write("sanitise: skipped, the compiler (cc) has no libasan.so\n");
    tellCounts({ passed: 0, failed: 0, skipped: 1 });
    process.exitCode = 0;
  } else {
    makeCopy();
    if (build()) await test();
    else process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function makeCopy() {
  const built = join(projectFolder, "native/build");
  for (const name of COPIED) {
    cpSync(join(projectFolder, name), join(copy, name), { recursive: true, filter: (path) => path !== built });
  }
  symlinkSync(join(projectFolder, "node_modules"), join(copy, "node_modules"));
  mkdirSync(reports);
  // Some tests are an ordinary user's.
  chmodSync(folder, 0o755);
  chmodSync(reports, 0o1777);
}

function build() {
  process.stderr.write("sanitise: native build\n");
  const gyp = join(projectFolder, "node_modules/node-gyp/bin/node-gyp.js");
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [gyp, "rebuild", "-C", join(copy, "native"), ...nodeHeaders()],
    { env: { ...process.env, CFLAGS, LDFLAGS: SANITISERS }, encoding: "utf8" },
  );
  if (status !== 0) process.stderr.write(`${stdout}${stderr}sanitise: the native build failed\n`);
  return status === 0;
}

async function test() {
  const env = {
    ...process.env,
    LD_PRELOAD: libasan,
    ASAN_OPTIONS: `log_path=${join(reports, "report")}:exitcode=99:detect_leaks=0:handle_sigill=1`,
  };
  const asked = process.argv.slice(2);
  const counts = await runTests(copy, asked.length > 0 ? asked : TESTS, { env });
  const found = readdirSync(reports).sort();
  for (const name of found) {
    const message = readFileSync(join(reports, name), "utf8");
    process.stderr.write(`${message}\n`);
    tellFailure("a report of a sanitiser", [{ message }]);
  }
  if (found.length > 0) process.stderr.write(`sanitise: ${found.length} reports of sanitisers, shown above\n`);
  if (counts === undefined) process.exitCode = 2;
  // A process may have been meant to fail.
  else tellCounts({ ...counts, failed: counts.failed + found.length });
}

/** Where the compiler has it. Undefined: it has none, or there is no compiler. */
function library(name) {
  const path = spawnSync("cc", [`-print-file-name=${name}`], { encoding: "utf8" }).stdout?.trim();
  return path !== undefined && isAbsolute(path) ? path : undefined;
}
