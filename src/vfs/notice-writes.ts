/** What writers that pass us by (pass-on.ts) did to a file, found out from its size and times. */
import { type FileStat, isSameStat } from "../lib/files.ts";
import { toMilliseconds } from "../lib/time.ts";
import type { Context } from "./context.ts";
import type { LiveFile } from "./live-file.ts";
import { markWritten } from "./mark-written.ts";

/** Before Linux 6.13 two changes within one tick of its clock may leave the same times. */
const TICK_MS = 20;
/** What writers that were passed on did since the last look counts as written from here on: the file as it is by then. */
export async function noticeWrites(context: Context, live: LiveFile): Promise<FileStat | undefined> {
  if (live.noticed === undefined) return undefined;
  const seen = await lookAtFile(context, live);
  if (live.isNoticedExactly && isSameStat(live.noticed, seen.noticed)) return undefined;
  markWritten(context, live);
  // Where the rows cannot be told, the next look finds the same change.
  Object.assign(live, seen);
  await context.staged.flush();
  return seen.noticed;
}

/** As it is now, to be compared with later. */
export async function lookAtFile(
  context: Context,
  live: LiveFile,
): Promise<{ noticed: FileStat; isNoticedExactly: boolean }> {
  const noticed = await live.file.stat();
  const age = context.runtime.wallClock() - toMilliseconds(noticed.mtime);
  return { noticed, isNoticedExactly: context.passthrough.timesAreExact || age >= TICK_MS || age < 0 };
}
