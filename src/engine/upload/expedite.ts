/**
 * Expedites dirty rows, so that they are due at once: at a start, when a folder was created, when the token may do
 * more. Takes a few rows at a time, however many there are. A crash forgets the rest; the next start expedites all
 * rows.
 */
import type { After, EntryId, InodeId } from "../../metadata/ids.ts";
import type { Host, Rows } from "../core/index.ts";

const SLICE = 100;

interface Expedite {
  /** Expedites all rows, or those in one folder (an inode). */
  begin(folder?: InodeId): void;
  /** Expedites one slice of the rows. Returns whether there is more to do. */
  goOn(): boolean;
}

export function createExpedite({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">): Expedite {
  let isForAll = false;
  /** Folders, each with the last entry that was expedited. */
  const folders = new Map<InodeId, After<EntryId>>();

  return {
    begin(folder) {
      if (folder === undefined) isForAll = true;
      else folders.set(folder, 0);
    },
    goOn() {
      if (!isForAll && folders.size === 0) return false;
      const now = runtime.now();
      metadata.transaction(() => {
        if (isForAll) {
          const isMoreRows = metadata.nodes.expedite(now, SLICE);
          const isMoreAttempts = metadata.attempts.expedite(now, SLICE);
          isForAll = isMoreRows || isMoreAttempts;
          return;
        }
        const [first] = folders;
        if (first === undefined) return;
        const [folder, done] = first;
        const next = metadata.nodes.expediteIn(folder, now, done, SLICE);
        if (next === undefined) folders.delete(folder);
        else folders.set(folder, next);
      });
      return isForAll || folders.size > 0;
    },
  };
}
