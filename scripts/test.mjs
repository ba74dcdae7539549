/**
 * `npm test [-- --fast] [-- vitest's arguments]`: set-up, then the tests. The last line is, alone,
 * `N passed, M failed, K skipped`; not zero when a test failed or none ran.
 */
import { runTests, tellCounts } from "./run-tests.mjs";
import { projectFolder, setup } from "./setup.mjs";

const HELP = `npm test                          every test; the last line is "N passed, M failed, K skipped"
npm test -- --fast                an answer in less than three minutes: what is done within one process but for the
                                  long histories, and a few tests of each other kind (test/vitest.config.ts says which)
npm test -- test/engine -t rename    files whose path has that, tests whose name has that
npm test -- --fast test/engine    those of them that are fast

Whatever else is there for "vitest run" may be given too: npx vitest run --help
`;

const FAST = "--fast";
const given = process.argv.slice(2);

if (given.includes("--help") || given.includes("-h")) {
  process.stdout.write(HELP);
} else {
  await setup({ forTests: true });
  const env = given.includes(FAST) ? { ...process.env, WSFS_TESTS: "fast" } : process.env;
  const counts = await runTests(
    projectFolder,
    given.filter((argument) => argument !== FAST),
    { env },
  );
  if (counts === undefined) process.exitCode = 2;
  else tellCounts(counts);
}
