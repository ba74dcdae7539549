/** Asks before a plan is carried out: with --yes, or by a question to a person at a terminal. */
import { createInterface } from "node:readline/promises";
import { EXIT } from "../failure.ts";
import { printable } from "../wording.ts";

export async function isConfirmed(yes: boolean, question: string): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(?:es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

/** A script that forgets --yes must not take the plan for done, so the command fails. */
export function unconfirmed(): number {
  process.stderr.write("wsfs: nothing was changed; --yes does it\n");
  return EXIT.failure;
}

const SHOWN_MAX = 20;

/** Prints a line for each of the first items, and how many more there are. */
export async function printSome<T>(items: readonly T[], lineOf: (item: T) => string | Promise<string>): Promise<void> {
  for (const item of items.slice(0, SHOWN_MAX)) process.stdout.write(`${printable(await lineOf(item))}\n`);
  const more = items.length - SHOWN_MAX;
  if (more > 0) process.stdout.write(`… and ${more} more (--json shows all)\n`);
}
