/** The name of a conflict copy or a recovered copy. Pure. */
import { NAME_BYTES_MAX } from "../../contract/names.ts";
import type { WallTime } from "../../lib/clocks.ts";

/** Bytes. A longer ending is not an extension, but text that happens to follow a dot. It may be cut. */
const EXTENSION_BYTES_MAX = 32;

export type KeptFor = "conflict" | "recovered";

/**
 * Returns "report (conflict, host, 2026-01-31 12.00.05).txt", or with " 2", " 3" … after the time if that is taken. At
 * most NAME_BYTES_MAX bytes. `milliseconds`: wall clock.
 */
export function conflictName(
  name: string,
  host: string,
  milliseconds: WallTime,
  isTaken: (candidate: string) => boolean,
  why: KeptFor = "conflict",
): string {
  // A gateway may have names that no file can have.
  const possible = name.replaceAll(/[/\0]/g, "-").toWellFormed();
  const moment = new Date(milliseconds).toISOString().slice(0, 19).replace("T", " ").replaceAll(":", ".");
  const dot = possible.lastIndexOf(".");
  // ".bashrc" has no extension.
  const isExtension = dot > 0 && Buffer.byteLength(possible.slice(dot)) <= EXTENSION_BYTES_MAX;
  const [stem, extension] = isExtension ? [possible.slice(0, dot), possible.slice(dot)] : [possible, ""];
  for (let number = 1; ; number += 1) {
    const suffix = ` (${why}, ${host.replaceAll("/", "-")}, ${moment}${number === 1 ? "" : ` ${number}`})${extension}`;
    const candidate = cut(stem, NAME_BYTES_MAX - Buffer.byteLength(suffix)) + suffix;
    if (!isTaken(candidate)) return candidate;
  }
}

/** At most `bytes` bytes of UTF-8, whole characters. */
function cut(text: string, bytes: number): string {
  let kept = text;
  while (kept !== "" && Buffer.byteLength(kept) > bytes) kept = [...kept].slice(0, -1).join("");
  return kept;
}
