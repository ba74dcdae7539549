/** Write detection: finds out by size and times whether passthrough writers changed a file. */
import { type ElapsedTime, earlierOf, laterOf, plus } from "../../lib/clocks.ts";
import { type FileStat, isSameStat } from "../../lib/files.ts";
import { toMilliseconds } from "../../lib/time.ts";
import type { Host, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import type { KnownStat } from "./passthrough-use.ts";
import type { LocalFiles } from "./room.ts";
import { setContentDirty } from "./set-dirty.ts";

/** Milliseconds. Before Linux 6.13, two changes within one tick of its clock may leave the same times. */
const TICK_MS = 20;

/** The stat that a look found, and the counters from before the look. A later change shows in the counters. */
export interface Look {
  readonly stat: FileStat;
  readonly writes: number;
  readonly inFlight: number;
  readonly timesSet: number;
}

/**
 * Finds out whether passthrough writers changed the file since the last look, and sets the content dirty if so.
 * Resolves to the present state of the file; undefined: nothing was written. Rejects with ESTALE, or with errors of the
 * disk or the rows.
 */
export async function detectWrites(
  context: Rows & LocalFiles & Host,
  cacheFile: OpenCacheFile,
): Promise<Look | undefined> {
  for (;;) {
    const {
      passthrough: { lastStat },
      changes: { writes, inFlight, timesSet },
    } = cacheFile;
    if (lastStat === undefined) return undefined;
    const taken = await statFile(context, cacheFile);
    // Another look ended meanwhile, perhaps a later one than this, or the last writer has gone.
    if (cacheFile.passthrough.lastStat !== lastStat) continue;
    if (lastStat.isExact && isSameStat(lastStat.stat, taken.stat)) return undefined;
    setContentDirty(context, cacheFile, writtenAt(context, lastStat, taken));
    // If the rows took no change, this is not reached, and the next look finds the same change.
    cacheFile.passthrough.statTaken(taken);
    await context.dirtyLog.flush();
    return { stat: taken.stat, writes: writes + 1, inFlight, timesSet };
  }
}

/**
 * The time of the last write, from the ctime. The wall clock may have been set since, so the result is kept between the
 * times of the two looks.
 */
function writtenAt({ runtime }: Host, before: KnownStat, taken: KnownStat): ElapsedTime {
  const age = runtime.wallClock() - toMilliseconds(taken.stat.ctime);
  const written = plus(runtime.elapsed(), -age);
  return earlierOf(taken.at, laterOf(before.at, written));
}

/** The present stat of the file, for a later comparison. */
export async function statFile(context: LocalFiles & Host, cacheFile: OpenCacheFile): Promise<KnownStat> {
  const stat = await cacheFile.disk.file.stat();
  return { stat, at: context.runtime.elapsed(), isExact: isExact(context, stat) };
}

/** True: any change made after this stat shows in the file's times. */
export function isExact({ runtime, passthrough }: LocalFiles & Host, { mtime }: FileStat): boolean {
  const age = runtime.wallClock() - toMilliseconds(mtime);
  return passthrough.timesAreExact || age >= TICK_MS || age < 0;
}
