/**
 * Which parts of a live file are not here. Memory knows what is missing now, the row what is
 * missing after a crash; the row may name more than is missing (it is fetched again), but never a
 * byte that a program wrote, and it forgets a range only after the bytes are in the file.
 */
import { clipRanges, formatRanges, intersectRanges, type Ranges, subtractRange, touchesRange } from "../lib/ranges.ts";
import type { Context } from "./context.ts";
import type { LiveFile, Origin } from "./live-file.ts";

export function wakeReaders(live: LiveFile): void {
  for (const look of [...live.waiting]) look();
}

/** Bytes of the origin are in the file. */
export function arrived(live: LiveFile, start: number, end: number): void {
  live.missing = subtractRange(live.missing, start, end);
  wakeReaders(live);
}

/** A program's bytes are in the file: after this, no crash makes anybody fetch there. */
export function overwritten(context: Context, live: LiveFile, start: number, end: number): void {
  if (touchesRange(live.missing, start, end)) arrived(live, start, end);
  if (touchesRange(live.recorded, start, end)) record(context, live, subtractRange(live.recorded, start, end));
}

/** The file ends at `size` now: what was missing behind it is wanted by nobody. */
export function cutShort(context: Context, live: LiveFile, size: number): void {
  live.missing = clipRanges(live.missing, size);
  live.cutTo = Math.min(size, live.cutTo ?? size);
  for (const download of live.downloads) {
    if (download.start >= size) download.controller.abort();
  }
  wakeReaders(live);
  recordCut(context, live);
}

/**
 * What is new behind the place where the file was cut short is no longer the origin's. Where the row could
 * not be told, no further change is acknowledged before it is: once the file has grown again its size does not tell.
 */
export function recordCut(context: Context, live: LiveFile): void {
  if (live.cutTo === undefined) return;
  record(context, live, clipRanges(live.recorded, live.cutTo));
  live.cutTo = undefined;
}

/** The content is this version too: what is missing is had from there, for the one it came from may be gone. */
export function comesFrom(
  { metadata, lives }: Pick<Context, "metadata" | "lives">,
  lineage: number,
  origin: Origin,
): void {
  const row = { originNode: origin.node, originVersion: origin.version };
  if (metadata.lives.get(lineage) !== undefined) metadata.lives.update(lineage, row);
  const live = lives.get(lineage);
  if (live !== undefined) live.origin = origin;
}

/** All of it has to come again. */
export function lost(context: Context, live: LiveFile, missing: Ranges): void {
  live.missing = missing;
  record(context, live, missing);
  wakeReaders(live);
}

/**
 * What came in is remembered, but a file counts as whole only once it is checked. Among bytes of a
 * program, whose hash nobody knows, what came in is remembered once it is synced.
 */
export async function recordArrived(context: Context, live: LiveFile): Promise<void> {
  const isUnchecked = live.isOriginal && live.originHash !== null && !live.isChecked;
  if (!live.isKept || (isUnchecked && live.missing.length === 0)) return;
  const { missing } = live;
  if (!live.isOriginal && missing !== live.recorded) await live.sync();
  // What a program wrote meanwhile is in neither.
  record(context, live, intersectRanges(missing, live.recorded));
}

function record(context: Context, live: LiveFile, missing: Ranges): void {
  if (context.metadata.lives.get(live.lineage) === undefined) return;
  if (missing.length === live.recorded.length && missing.every((bound, index) => bound === live.recorded[index]))
    return;
  context.metadata.lives.update(live.lineage, { missing: formatRanges(missing) });
  live.recorded = missing;
}
