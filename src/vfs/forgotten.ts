/**
 * What the kernel forgot: nameless inodes and superseded bytes behind it may go. Nobody waits for that, so
 * what it forgets at about the same moment goes with one commit: a folder that is removed is one such word
 * for each file. A crash before leaves what one before the word would leave, to the next mount.
 */
import type { Context } from "./context.ts";
import type { Lineage } from "./filesystem.ts";
import { dropIfUnused, isUnused } from "./nameless.ts";

/** From the first word to the commit. */
export const GATHER_MS = 20;
/** With one commit, which programs wait for. */
const SLICE = 32;

export function forget(context: Context, lineages: readonly { readonly lineage: Lineage }[]): void {
  const { bytes, lives } = context;
  for (const { lineage } of lineages) {
    // What is open may have lost its name by the time it is closed.
    if (lives.has(lineage) || isUnused(context, lineage)) bytes.forgotten.add(lineage);
  }
  if (bytes.forgotten.size > 0) dropLater(context, GATHER_MS);
}

function dropLater(context: Context, wait: number): void {
  const { bytes, runtime } = context;
  bytes.forgetTimer ??= runtime.setTimer(wait, () => {
    bytes.forgetTimer = undefined;
    const isDropped = dropSome(context);
    if (isDropped && bytes.forgotten.size > 0) dropLater(context, 0);
  });
}

/** All of it, now. What the rows do not take is kept for when they can be changed again. */
export function dropForgotten(context: Context): void {
  const { bytes } = context;
  bytes.forgetTimer?.cancel();
  bytes.forgetTimer = undefined;
  while (bytes.forgotten.size > 0 && dropSome(context));
}

/** False: the rows could not be changed. */
function dropSome(context: Context): boolean {
  const { metadata, log } = context;
  const { forgotten } = context.bytes;
  const lineages: number[] = [];
  for (const lineage of forgotten) if (lineages.push(lineage) === SLICE) break;
  try {
    const parts = metadata.transaction(() =>
      lineages.map((lineage) => metadata.part(() => dropIfUnused(context, lineage))),
    );
    for (const [index, part] of parts.entries()) {
      // A mistake of ours: it stays with the next mount. None of the others stays for it.
      if ("error" in part) log.error({ err: part.error, lineage: lineages[index] }, "what the kernel forgot stays");
    }
  } catch (error) {
    log.warn({ err: error, lineages }, "what the kernel forgot could not be removed yet");
    return false;
  }
  for (const lineage of lineages) forgotten.delete(lineage);
  return true;
}
