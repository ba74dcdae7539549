/** State of upload/group-sync.ts: the files that wait for a shared sync. */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { CacheFile } from "./cache-file.ts";

interface Waiting {
  readonly cacheFile: CacheFile;
  readonly done: (result: Promise<void>) => void;
}

export interface GroupSync {
  readonly waiting: Waiting[];
  isRunning: boolean;
  /** Until then each file is synced by itself; "end": until the mount ends. Undefined: files share a sync. */
  aloneUntil: ElapsedTime | "end" | undefined;
  /** The last sync of the disk took long. */
  wasSlow: boolean;
}

export function createGroupSync(): GroupSync {
  return { waiting: [], isRunning: false, wasSlow: false, aloneUntil: undefined };
}
