/**
 * Which parts of a live file are not here. Memory knows what is missing now, the row what is
 * missing after a crash; the row may name more than is missing (it is fetched again), but never a
 * byte that a program wrote, and it forgets a range only after the bytes are in the file. The same goes
 * for what is unproven: bytes of the origin beside those of a program, here or not, that verify.ts has yet to check.
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
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { CacheFile, LocalFiles, Origin, Rows } from "../core/index.ts";

export function wakeReaders(cacheFile: CacheFile): void {
  for (const look of [...cacheFile.ranges.waiting]) look();
}

/** Bytes of the origin are in the file. */
export function rangeFetched(cacheFile: CacheFile, start: number, end: number): void {
  cacheFile.ranges.missing = subtractRange(cacheFile.ranges.missing, start, end);
  wakeReaders(cacheFile);
}

/** A program's bytes are in the file: after this, no crash makes anybody fetch there, or take them for the origin's. */
export function overwritten(context: Rows, cacheFile: CacheFile, start: number, end: number): void {
  const {
    ranges: { persistedMissing, unverified },
  } = cacheFile;
  if (touchesRange(cacheFile.ranges.missing, start, end)) rangeFetched(cacheFile, start, end);
  if (touchesRange(persistedMissing, start, end) || touchesRange(unverified, start, end)) {
    record(context, cacheFile, subtractRange(persistedMissing, start, end), subtractRange(unverified, start, end));
  }
}

/** The file ends at `size` now: what was missing behind it is wanted by nobody. */
export function truncated(context: Rows, cacheFile: CacheFile, size: number): void {
  cacheFile.ranges.missing = clipRanges(cacheFile.ranges.missing, size);
  cacheFile.ranges.unverified = clipRanges(cacheFile.ranges.unverified, size);
  cacheFile.ranges.truncatedTo = Math.min(size, cacheFile.ranges.truncatedTo ?? size);
  for (const download of cacheFile.ranges.downloads) {
    if (download.start >= size) download.controller.abort();
  }
  wakeReaders(cacheFile);
  persistTruncation(context, cacheFile);
}

/**
 * What is new behind the place where the file was cut short is no longer the origin's. Where the row could
 * not be told, no further change is acknowledged before it is: once the file has grown again its size does not tell.
 */
export function persistTruncation(context: Rows, cacheFile: CacheFile): void {
  if (cacheFile.ranges.truncatedTo === undefined) return;
  record(
    context,
    cacheFile,
    clipRanges(cacheFile.ranges.persistedMissing, cacheFile.ranges.truncatedTo),
    cacheFile.ranges.unverified,
  );
  cacheFile.ranges.truncatedTo = undefined;
}

/** The content is this version too: what is missing is had from there, for the one it came from may be gone. */
export function comesFrom(
  { metadata, cacheFiles }: Pick<Rows & LocalFiles, "metadata" | "cacheFiles">,
  lineage: KernelNodeId,
  origin: Origin,
): void {
  const row = { originNode: origin.node, originVersion: origin.version };
  if (metadata.cacheFiles.get(lineage) !== undefined) metadata.cacheFiles.update(lineage, row);
  const cacheFile = cacheFiles.get(lineage);
  if (cacheFile !== undefined) cacheFile.ranges.origin = origin;
}

/**
 * Before its first byte changes: what is not checked by now is unproven. In the transaction that says that it changes,
 * which may fail: for memory once that is over.
 */
export function leaveOrigin({ metadata }: Rows, cacheFile: CacheFile): Ranges {
  const {
    lineage,
    ranges: { originHash, originSize, isOriginal },
  } = cacheFile;
  if (!isOriginal) return cacheFile.ranges.unverified;
  const isRight = originHash === null || (cacheFile.ranges.isChecked && cacheFile.ranges.missing.length === 0);
  if (isRight || metadata.cacheFiles.get(lineage) === undefined) return NO_RANGES;
  const unverified = rangeOf(0, originSize);
  metadata.cacheFiles.update(lineage, { originHash, originSize, unproven: formatRanges(unverified) });
  return unverified;
}

/** No version has its content any more: programs that have it open write to what is changed already. */
export function leaveOriginForGood({ ranges }: CacheFile): void {
  ranges.origin = undefined;
  ranges.originHash = null;
  ranges.isOriginal = false;
  ranges.unverified = NO_RANGES;
}

/** What is here of the origin, and synced, is that version's; or nobody can find out. */
export function markVerified(context: Rows, cacheFile: CacheFile): void {
  record(context, cacheFile, cacheFile.ranges.persistedMissing, NO_RANGES);
}

/** All of it has to come again. */
export function lost(context: Rows, cacheFile: CacheFile, missing: Ranges): void {
  cacheFile.ranges.isChecked = false;
  cacheFile.ranges.missing = missing;
  record(context, cacheFile, missing, cacheFile.ranges.unverified);
  wakeReaders(cacheFile);
}

/**
 * What came in is remembered, but a file counts as whole only once it is checked. Among bytes of a
 * program, whose hash nobody knows, what came in is remembered once it is synced.
 */
export async function recordArrived(context: Rows, cacheFile: CacheFile): Promise<void> {
  const isUnchecked =
    cacheFile.ranges.isOriginal && cacheFile.ranges.originHash !== null && !cacheFile.ranges.isChecked;
  if (!cacheFile.disk.isKept || (isUnchecked && cacheFile.ranges.missing.length === 0)) return;
  const {
    ranges: { missing },
  } = cacheFile;
  if (!cacheFile.ranges.isOriginal && missing !== cacheFile.ranges.persistedMissing) await cacheFile.disk.sync();
  // What a program wrote meanwhile is in neither.
  record(context, cacheFile, intersectRanges(missing, cacheFile.ranges.persistedMissing), cacheFile.ranges.unverified);
}

function record({ metadata }: Rows, cacheFile: CacheFile, recorded: Ranges, unverified: Ranges): void {
  const row = metadata.cacheFiles.get(cacheFile.lineage);
  const next = { missing: formatRanges(recorded), unproven: formatRanges(unverified) };
  const isTold = row === undefined || (row.missing === next.missing && row.unproven === next.unproven);
  if (!isTold) metadata.cacheFiles.update(cacheFile.lineage, next);
  cacheFile.ranges.persistedMissing = recorded;
  cacheFile.ranges.unverified = unverified;
}
