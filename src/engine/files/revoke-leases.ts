/** The end of what let-move.ts began: from here on the next WRITE to this file comes to us, and counts. */
import type { Context, LiveFile } from "../core/index.ts";

export function hearWrites({ mover }: Pick<Context, "mover">, live: LiveFile): void {
  if (live.file.descriptor !== undefined) mover.stopWriting(live.file.descriptor);
}
