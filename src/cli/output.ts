/** Handles output that cannot be written. */
import { hasCode } from "../lib/system-error.ts";

/** A reader that stops (`| head`, `2>&1 | head`) is no failure: the command goes on without it. */
export function guardOutput(): { why(): string | undefined } {
  let why: string | undefined;
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error) => {
    // A file on a full disk: its reader must not take a part for the whole.
    if (!hasCode(error, "EPIPE")) why ??= `standard output cannot be written: ${error.message}`;
  });
  return { why: () => why };
}
