/** State of upload/group-sync.ts: the files that wait for a sync that they share. */
import type { CacheFile } from "./cache-file.ts";

interface Waiting {
  readonly cacheFile: CacheFile;
  readonly done: (result: Promise<void>) => void;
}

export interface GroupSync {
  readonly waiting: Waiting[];
  isRunning: boolean;
  /** Runtime.elapsed() until which each file is synced by itself. */
  aloneUntil: number;
  /** The last sync of the disk took long. */
  wasSlow: boolean;
}

export function createGroupSync(): GroupSync {
  return { waiting: [], isRunning: false, wasSlow: false, aloneUntil: Number.NEGATIVE_INFINITY };
}
