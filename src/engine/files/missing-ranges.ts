/**
 * Missing and unverified ranges of a cache file. Memory has the ranges that are missing now; the row has the persisted
 * missing ranges, which count after a crash.
 * - The row may name more than is missing: after a crash those bytes are fetched again.
 * - The row never names a byte that a program wrote.
 * - The row forgets a range only after its bytes are in the file.
 *
 * The same rules hold for unverified ranges: bytes of the origin in a changed file, here or missing, that verify.ts has
 * yet to check.
 */
import {
  clipRanges,
  intersectRanges,
  NO_RANGES,
  type Ranges,
  rangeOf,
  subtractRange,
  touchesRange,
} from "../../lib/ranges.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Rows } from "../core/index.ts";
import type { OpenCacheFile, Origin } from "./cache-file.ts";
import type { LocalFiles } from "./room.ts";
import { stopHash } from "./running-hash.ts";

export function wakeReaders(cacheFile: OpenCacheFile): void {
  for (const look of [...cacheFile.ranges.waiting]) look();
}

/** Notes that these bytes of the origin are in the file. */
export function rangeFetched(cacheFile: OpenCacheFile, start: number, end: number): void {
  cacheFile.ranges.missing = subtractRange(cacheFile.ranges.missing, start, end);
  wakeReaders(cacheFile);
}

/**
 * Notes that a program's bytes are in the file. After this, no crash leads to a fetch over these bytes, or to their
 * being checked as the origin's.
 */
export function overwritten(context: Rows, cacheFile: OpenCacheFile, start: number, end: number): void {
  const {
    ranges: { persistedMissing, unverified },
  } = cacheFile;
  if (touchesRange(cacheFile.ranges.missing, start, end)) rangeFetched(cacheFile, start, end);
  if (touchesRange(persistedMissing, start, end) || touchesRange(unverified, start, end)) {
    record(context, cacheFile, subtractRange(persistedMissing, start, end), subtractRange(unverified, start, end));
  }
}

/** Notes that the file ends at `size` now: missing bytes behind it are not wanted any more. */
export function truncated(context: Rows, cacheFile: OpenCacheFile, size: number): void {
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
 * Records a truncation in the row: new bytes behind that size are not the origin's. If the row could not be changed at
 * the truncation, no further change is acknowledged before it is. Once the file has grown again, its size does not tell
 * where it was truncated.
 */
export function persistTruncation(context: Rows, cacheFile: OpenCacheFile): void {
  if (cacheFile.ranges.truncatedTo === undefined) return;
  record(
    context,
    cacheFile,
    clipRanges(cacheFile.ranges.persistedMissing, cacheFile.ranges.truncatedTo),
    cacheFile.ranges.unverified,
  );
  cacheFile.ranges.truncatedTo = undefined;
}

/**
 * The content equals this version too. Missing ranges are fetched from it from now on, because the version that the
 * content came from may be gone.
 */
export function comesFrom(
  { metadata, cacheFiles }: Pick<Rows & LocalFiles, "metadata" | "cacheFiles">,
  kernelNodeId: KernelNodeId,
  origin: Origin,
): void {
  const row = { originNode: origin.node, originVersion: origin.version };
  if (metadata.cacheFiles.get(kernelNodeId) !== undefined) metadata.cacheFiles.update(kernelNodeId, row);
  const cacheFile = cacheFiles.get(kernelNodeId);
  if (cacheFile !== undefined) cacheFile.ranges.origin = origin;
}

/**
 * Before the first byte of the file changes: bytes that were not checked yet become unverified in the row. Returns the
 * unverified ranges. Call it in the transaction that sets the content dirty. That transaction may fail, so the caller
 * changes the state in memory after it.
 */
export function leaveOrigin({ metadata }: Rows, cacheFile: OpenCacheFile): Ranges {
  const {
    kernelNodeId,
    ranges: { originHash, originSize, isOriginal },
  } = cacheFile;
  if (!isOriginal) return cacheFile.ranges.unverified;
  const isRight = originHash === null || (cacheFile.ranges.isChecked && cacheFile.ranges.missing.length === 0);
  if (isRight || metadata.cacheFiles.get(kernelNodeId) === undefined) return NO_RANGES;
  const unverified = rangeOf(0, originSize);
  metadata.cacheFiles.update(kernelNodeId, { originHash, originSize, unproven: unverified });
  return unverified;
}

/**
 * No version has this content any more, so nothing is compared with an origin any more. For programs that have the file
 * open, the content counts as changed already.
 */
export function leaveOriginForGood({ ranges }: OpenCacheFile): void {
  ranges.origin = undefined;
  ranges.originHash = null;
  ranges.isOriginal = false;
  ranges.unverified = NO_RANGES;
}

/** Ends the unverified ranges: the bytes of the origin are synced and known to be right, or cannot be checked. */
export function markVerified(context: Rows, cacheFile: OpenCacheFile): void {
  record(context, cacheFile, cacheFile.ranges.persistedMissing, NO_RANGES);
}

/** Makes these ranges missing: they have to be fetched again. */
export function lost(context: Rows, cacheFile: OpenCacheFile, missing: Ranges): void {
  cacheFile.ranges.isChecked = false;
  cacheFile.ranges.missing = missing;
  // Bytes that are fetched again may differ from those that were hashed.
  stopHash(cacheFile.ranges);
  record(context, cacheFile, missing, cacheFile.ranges.unverified);
  wakeReaders(cacheFile);
}

/**
 * Records fetched ranges in the row. The row says that a file is whole only once the file is checked. A file that a
 * program has changed is synced first: its hash is not known, so bytes that power loss took would not be noticed.
 */
export async function recordArrived(context: Rows, cacheFile: OpenCacheFile): Promise<void> {
  const isUnchecked =
    cacheFile.ranges.isOriginal && cacheFile.ranges.originHash !== null && !cacheFile.ranges.isChecked;
  if (!cacheFile.disk.isKept || (isUnchecked && cacheFile.ranges.missing.length === 0)) return;
  const {
    ranges: { missing },
  } = cacheFile;
  if (!cacheFile.ranges.isOriginal && missing !== cacheFile.ranges.persistedMissing) await cacheFile.disk.sync();
  // Ranges that a program wrote during the sync are in neither set.
  record(context, cacheFile, intersectRanges(missing, cacheFile.ranges.persistedMissing), cacheFile.ranges.unverified);
}

function record({ metadata }: Rows, cacheFile: OpenCacheFile, recorded: Ranges, unverified: Ranges): void {
  const isRow = metadata.cacheFiles.get(cacheFile.kernelNodeId) !== undefined;
  if (isRow) metadata.cacheFiles.update(cacheFile.kernelNodeId, { missing: recorded, unproven: unverified });
  cacheFile.ranges.persistedMissing = recorded;
  cacheFile.ranges.unverified = unverified;
}
