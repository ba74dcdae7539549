/** What writers that pass us by (pass-on.ts) did to a file, found out from its size and times. */
import { type FileStat, isSameStat } from "../../lib/files.ts";
import { toMilliseconds } from "../../lib/time.ts";
import type { CacheFile, Host, LocalFiles, Rows, Uploads } from "../core/index.ts";
import { setContentDirty } from "./set-dirty.ts";

/** Before Linux 6.13 two changes within one tick of its clock may leave the same times. */
export const TICK_MS = 20;

/** The file as it was found, and what was counted before that: whoever has changed it since is counted. */
export interface Look {
  readonly stat: FileStat;
  readonly writes: number;
  readonly inFlight: number;
  readonly timesSet: number;
}

/** What writers that were passed on did since the last look counts as written from here on: the file as it is by then. */
export async function detectWrites(
  context: Rows & LocalFiles & Uploads & Host,
  cacheFile: CacheFile,
): Promise<Look | undefined> {
  for (;;) {
    const {
      passthrough: { lastStat },
      changes: { writes, inFlight, timesSet },
    } = cacheFile;
    if (lastStat === undefined) return undefined;
    const seen = await statFile(context, cacheFile);
    // Somebody else has looked meanwhile, later perhaps than this; or the last writer has gone.
    if (cacheFile.passthrough.lastStat !== lastStat) continue;
    if (cacheFile.passthrough.isLastStatExact && isSameStat(lastStat, seen.lastStat)) return undefined;
    setContentDirty(context, cacheFile, writtenAt(context, cacheFile, seen));
    // Where the rows cannot be told, the next look finds the same change.
    remember(cacheFile, seen);
    await context.dirtyLog.flush();
    return { stat: seen.lastStat, writes: writes + 1, inFlight, timesSet };
  }
}

interface Seen {
  readonly lastStat: FileStat;
  readonly lastStatAt: number;
  readonly isLastStatExact: boolean;
}

export function remember({ passthrough }: CacheFile, { lastStat, lastStatAt, isLastStatExact }: Seen): void {
  passthrough.lastStat = lastStat;
  passthrough.lastStatAt = lastStatAt;
  passthrough.isLastStatExact = isLastStatExact;
}

/** When it was last written, by its ctime: the clock behind that may be set, but not out of the time between the two looks. */
function writtenAt({ runtime }: Host, { passthrough: { lastStatAt } }: CacheFile, seen: Seen): number {
  const age = runtime.wallClock() - toMilliseconds(seen.lastStat.ctime);
  return Math.min(seen.lastStatAt, Math.max(lastStatAt, runtime.elapsed() - age));
}

/** As it is now, to be compared with later. */
export async function statFile(context: LocalFiles & Host, cacheFile: CacheFile): Promise<Seen> {
  const lastStat = await cacheFile.disk.file.stat();
  const lastStatAt = context.runtime.elapsed();
  const age = context.runtime.wallClock() - toMilliseconds(lastStat.mtime);
  return { lastStat, lastStatAt, isLastStatExact: context.passthrough.timesAreExact || age >= TICK_MS || age < 0 };
}
