/**
 * Runs behaviour cases in a folder, each in a new one of its own below it:
 *
 *   node --import ./scripts/typescript.mjs test/mount/cases/run.ts DIR [GROUP/CASE ...]
 *
 * Without cases it reads their names from standard input, one a line, until its end. Prints one
 * line of JSON for each: {"case", "passed": true}, {"case", "error"} or {"case", "notHere"}. It is
 * made to be killed: a system call may never come back from a mount.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { CASES } from "./all.ts";
import { type Case, NotHere } from "./case.ts";

const all = new Map<string, Case>(
  Object.entries(CASES).flatMap(([group, cases]) =>
    Object.entries(cases).map(([name, one]): [string, Case] => [`${group}/${name}`, one]),
  ),
);
const order = [...all.keys()];

async function runCase(dir: string, name: string): Promise<object> {
  const one = all.get(name);
  if (one === undefined) return { error: `no case of the name ${JSON.stringify(name)}` };
  const folder = join(dir, `case-${order.indexOf(name)}-${process.pid}`);
  try {
    mkdirSync(folder);
    await one(folder);
    return { passed: true };
  } catch (error) {
    if (error instanceof NotHere) return { notHere: error.message };
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

const [dir, ...given] = process.argv.slice(2);
if (dir === undefined) throw new Error("expected a folder");
// What the cases do with modes is not to depend on who runs them.
process.umask(0o022);
for await (const name of given.length > 0 ? given : createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify({ case: name, ...(await runCase(dir, name)) })}\n`);
}
