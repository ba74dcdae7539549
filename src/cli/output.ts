/** What becomes of a command whose output cannot be written. */
import { hasCode } from "../lib/system-error.ts";

/** That somebody stops reading (`| head`, `2>&1 | head`) is no failure: what was begun goes on, unheard. */
export function guardOutput(): { why(): string | undefined } {
  let why: string | undefined;
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error) => {
    // A file on a full disk: who reads it must not take a part for the whole.
    if (!hasCode(error, "EPIPE")) why ??= `standard output cannot be written: ${error.message}`;
  });
  return { why: () => why };
}
