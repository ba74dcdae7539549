/** Files that wait for the sync which sync-together.ts makes for all of them; what it keeps in memory. */
import type { LiveFile } from "./cache-file.ts";

interface Waiting {
  readonly live: LiveFile;
  readonly done: (result: Promise<void>) => void;
}

export interface SyncTogether {
  readonly waiting: Waiting[];
  isRunning: boolean;
  aloneUntil: number;
  /** The last sync of the disk took long. */
  wasSlow: boolean;
}

export function createSyncTogether(): SyncTogether {
  return { waiting: [], isRunning: false, wasSlow: false, aloneUntil: Number.NEGATIVE_INFINITY };
}
