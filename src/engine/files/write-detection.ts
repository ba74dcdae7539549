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
  live: CacheFile,
): Promise<Look | undefined> {
  for (;;) {
    const { lastStat, writes, inFlight, timesSet } = live;
    if (lastStat === undefined) return undefined;
    const seen = await statFile(context, live);
    // Somebody else has looked meanwhile, later perhaps than this; or the last writer has gone.
    if (live.lastStat !== lastStat) continue;
    if (live.isLastStatExact && isSameStat(lastStat, seen.noticed)) return undefined;
    setContentDirty(context, live, writtenAt(context, live, seen));
    // Where the rows cannot be told, the next look finds the same change.
    Object.assign(live, seen);
    await context.dirtyLog.flush();
    return { stat: seen.noticed, writes: writes + 1, inFlight, timesSet };
  }
}

interface Seen {
  readonly noticed: FileStat;
  readonly noticedAt: number;
  readonly isLastStatExact: boolean;
}

/** When it was last written, by its ctime: the clock behind that may be set, but not out of the time between the two looks. */
function writtenAt({ runtime }: Host, { lastStatAt }: CacheFile, seen: Seen): number {
  const age = runtime.wallClock() - toMilliseconds(seen.noticed.ctime);
  return Math.min(seen.noticedAt, Math.max(lastStatAt, runtime.elapsed() - age));
}

/** As it is now, to be compared with later. */
export async function statFile(context: LocalFiles & Host, live: CacheFile): Promise<Seen> {
  const noticed = await live.file.stat();
  const noticedAt = context.runtime.elapsed();
  const age = context.runtime.wallClock() - toMilliseconds(noticed.mtime);
  return { noticed, noticedAt, isLastStatExact: context.passthrough.timesAreExact || age >= TICK_MS || age < 0 };
}
