/** Handles output that cannot be written. */
import { hasCode } from "../lib/system-error.ts";

/** A reader that stops (`| head`) is no failure: the command goes on. `why`: the reason of any other failed write. */
export function guardOutput(): { why(): string | undefined } {
  let why: string | undefined;
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error) => {
    // For example a file on a full disk: the command must fail, as the file is not complete.
    if (!hasCode(error, "EPIPE")) why ??= `standard output cannot be written: ${error.message}`;
  });
  return { why: () => why };
}
