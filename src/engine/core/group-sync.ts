/** Files that wait for the sync which sync-together.ts makes for all of them; what it keeps in memory. */
import type { CacheFile } from "./cache-file.ts";

interface Waiting {
  readonly live: CacheFile;
  readonly done: (result: Promise<void>) => void;
}

export interface GroupSync {
  readonly waiting: Waiting[];
  isRunning: boolean;
  aloneUntil: number;
  /** The last sync of the disk took long. */
  wasSlow: boolean;
}

export function createGroupSync(): GroupSync {
  return { waiting: [], isRunning: false, wasSlow: false, aloneUntil: Number.NEGATIVE_INFINITY };
}
