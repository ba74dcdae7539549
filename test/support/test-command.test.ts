/** What `npm test` is told and says before a test runs. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { run } from "./child.ts";

const COMMAND = fileURLToPath(new URL("../../scripts/test.mjs", import.meta.url));

test("a flag that is mistyped is one line", async () => {
  const { code, stdout, stderr } = await run(process.execPath, [COMMAND, "--fsat"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toBe('test: Unknown option `--fsat`; "npm test -- --help" shows what there is\n');
});

test("--help says what may be given, and runs nothing", async () => {
  const { code, stdout, stderr } = await run(process.execPath, [COMMAND, "--help"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("npm test -- --fast");
});
