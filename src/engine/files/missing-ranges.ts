/**
 * Which parts of a live file are not here. Memory knows what is missing now, the row what is
 * missing after a crash; the row may name more than is missing (it is fetched again), but never a
 * byte that a program wrote, and it forgets a range only after the bytes are in the file. The same goes
 * for what is unproven: bytes of the origin beside those of a program, here or not, that prove.ts has yet to check.
 */
import {
  clipRanges,
  formatRanges,
  intersectRanges,
  NO_RANGES,
  type Ranges,
  rangeOf,
  subtractRange,
  touchesRange,
} from "../../lib/ranges.ts";
import type { Lineage } from "../../metadata/ids.ts";
import type { CacheFile, LocalFiles, Origin, Rows } from "../core/index.ts";

export function wakeReaders(live: CacheFile): void {
  for (const look of [...live.ranges.waiting]) look();
}

/** Bytes of the origin are in the file. */
export function rangeFetched(live: CacheFile, start: number, end: number): void {
  live.ranges.missing = subtractRange(live.ranges.missing, start, end);
  wakeReaders(live);
}

/** A program's bytes are in the file: after this, no crash makes anybody fetch there, or take them for the origin's. */
export function overwritten(context: Rows, live: CacheFile, start: number, end: number): void {
  const {
    ranges: { persistedMissing, unverified },
  } = live;
  if (touchesRange(live.ranges.missing, start, end)) rangeFetched(live, start, end);
  if (touchesRange(persistedMissing, start, end) || touchesRange(unverified, start, end)) {
    record(context, live, subtractRange(persistedMissing, start, end), subtractRange(unverified, start, end));
  }
}

/** The file ends at `size` now: what was missing behind it is wanted by nobody. */
export function truncated(context: Rows, live: CacheFile, size: number): void {
  live.ranges.missing = clipRanges(live.ranges.missing, size);
  live.ranges.unverified = clipRanges(live.ranges.unverified, size);
  live.ranges.truncatedTo = Math.min(size, live.ranges.truncatedTo ?? size);
  for (const download of live.ranges.downloads) {
    if (download.start >= size) download.controller.abort();
  }
  wakeReaders(live);
  persistTruncation(context, live);
}

/**
 * What is new behind the place where the file was cut short is no longer the origin's. Where the row could
 * not be told, no further change is acknowledged before it is: once the file has grown again its size does not tell.
 */
export function persistTruncation(context: Rows, live: CacheFile): void {
  if (live.ranges.truncatedTo === undefined) return;
  record(context, live, clipRanges(live.ranges.persistedMissing, live.ranges.truncatedTo), live.ranges.unverified);
  live.ranges.truncatedTo = undefined;
}

/** The content is this version too: what is missing is had from there, for the one it came from may be gone. */
export function comesFrom(
  { metadata, cacheFiles }: Pick<Rows & LocalFiles, "metadata" | "cacheFiles">,
  lineage: Lineage,
  origin: Origin,
): void {
  const row = { originNode: origin.node, originVersion: origin.version };
  if (metadata.lives.get(lineage) !== undefined) metadata.lives.update(lineage, row);
  const live = cacheFiles.get(lineage);
  if (live !== undefined) live.ranges.origin = origin;
}

/**
 * Before its first byte changes: what is not checked by now is unproven. In the transaction that says that it changes,
 * which may fail: for memory once that is over.
 */
export function leaveOrigin({ metadata }: Rows, live: CacheFile): Ranges {
  const {
    lineage,
    ranges: { originHash, originSize, isOriginal },
  } = live;
  if (!isOriginal) return live.ranges.unverified;
  const isRight = originHash === null || (live.ranges.isChecked && live.ranges.missing.length === 0);
  if (isRight || metadata.lives.get(lineage) === undefined) return NO_RANGES;
  const unproven = rangeOf(0, originSize);
  metadata.lives.update(lineage, { originHash, originSize, unproven: formatRanges(unproven) });
  return unproven;
}

/** No version has its content any more: programs that have it open write to what is changed already. */
export function leaveOriginForGood({ ranges }: CacheFile): void {
  ranges.origin = undefined;
  ranges.originHash = null;
  ranges.isOriginal = false;
  ranges.unverified = NO_RANGES;
}

/** What is here of the origin, and synced, is that version's; or nobody can find out. */
export function markVerified(context: Rows, live: CacheFile): void {
  record(context, live, live.ranges.persistedMissing, NO_RANGES);
}

/** All of it has to come again. */
export function lost(context: Rows, live: CacheFile, missing: Ranges): void {
  live.ranges.isChecked = false;
  live.ranges.missing = missing;
  record(context, live, missing, live.ranges.unverified);
  wakeReaders(live);
}

/**
 * What came in is remembered, but a file counts as whole only once it is checked. Among bytes of a
 * program, whose hash nobody knows, what came in is remembered once it is synced.
 */
export async function recordArrived(context: Rows, live: CacheFile): Promise<void> {
  const isUnchecked = live.ranges.isOriginal && live.ranges.originHash !== null && !live.ranges.isChecked;
  if (!live.disk.isKept || (isUnchecked && live.ranges.missing.length === 0)) return;
  const {
    ranges: { missing },
  } = live;
  if (!live.ranges.isOriginal && missing !== live.ranges.persistedMissing) await live.disk.sync();
  // What a program wrote meanwhile is in neither.
  record(context, live, intersectRanges(missing, live.ranges.persistedMissing), live.ranges.unverified);
}

function record({ metadata }: Rows, live: CacheFile, recorded: Ranges, unproven: Ranges): void {
  const row = metadata.lives.get(live.lineage);
  const next = { missing: formatRanges(recorded), unproven: formatRanges(unproven) };
  const isTold = row === undefined || (row.missing === next.missing && row.unproven === next.unproven);
  if (!isTold) metadata.lives.update(live.lineage, next);
  live.ranges.persistedMissing = recorded;
  live.ranges.unverified = unproven;
}
