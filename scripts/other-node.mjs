/**
 * Finds other releases of Node for tests: those of the npm package `node`, by npx.
 *
 *   node scripts/other-node.mjs 24
 *
 * Prints the path of the program. If it cannot be had, prints one line on stderr that names what is missing, with exit
 * code 3.
 */
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const RELEASES = { 22: "22.23.3", 24: "24.21.0", 26: "26.10.0" };
/** The first time, some 50 MB are downloaded. */
const LIMIT_MS = 180_000;

/** Returns the `path` of the program, or the reason why it is `missing`. `major`: one of RELEASES. */
export function otherNode(major) {
  const name = `node@${RELEASES[major]}`;
  const { status, stdout, stderr, error } = spawnSync("npx", ["--yes", name, "-p", "process.execPath"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LIMIT_MS,
  });
  if (status === 0) return { path: stdout.trim() };
  const why = error?.message ?? stderr.split("\n").find((line) => /error/i.test(line)) ?? `npx ended with ${status}`;
  return { missing: `the npm package ${name} cannot be had: ${why}` };
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [major = "", ...more] = process.argv.slice(2);
  if (!(major in RELEASES) || more.length > 0) {
    process.stderr.write(
      `other-node: expected one of ${Object.keys(RELEASES).join(", ")}, got "${process.argv.slice(2).join(" ")}"\n`,
    );
    process.exit(2);
  }
  const { path, missing } = otherNode(major);
  if (path !== undefined) process.stdout.write(`${path}\n`);
  else {
    process.stderr.write(`other-node: ${missing}\n`);
    process.exitCode = 3;
  }
}
