/** Missing ranges in memory and in the row, where a download, a write and a check come while a sync is under way. */
import { expect, onTestFinished, test } from "vitest";
import { OriginRanges } from "../../../src/engine/files/origin-ranges.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { deferred } from "../../../src/lib/deferred.ts";
import { NO_RANGES, rangeOf } from "../../../src/lib/ranges.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import { createMetadata } from "../../../src/metadata/metadata.ts";
import { NEW_INODE } from "../../support/new-inode.ts";

/** A changed file of 100 bytes, of which [0, 10) is here, and all else is missing. */
function begin() {
  const metadata = createMetadata(openDatabase(":memory:"), (value) => value);
  onTestFinished(() => metadata.close());
  const { kernelNodeId: id } = metadata.inodes.create({ ...NEW_INODE, kind: "file" });
  const origin = { node: "node", version: "version" };
  const missing = rangeOf(10, 100);
  const sizes = { size: 100, bytes: 100, usedAt: rowTime(1) };
  metadata.cacheFiles.create({ kernelNodeId: id, originNode: "node", originVersion: "version", missing, ...sizes });
  const found = { origin, originHash: "hash", originSize: 100, missing, persistedMissing: missing };
  const rest = { unverified: NO_RANGES, truncatedTo: undefined, isOriginal: false };
  const ranges = new OriginRanges(metadata.cacheFiles, id, { ...found, ...rest });
  const synced = deferred<void>();
  const disk = { isKept: true, sync: () => synced.promise };
  const inRow = () => metadata.cacheFiles.get(id)?.missing;
  return { ranges, disk, synced, inRow };
}

const MEANWHILE: Readonly<Record<string, readonly [(ranges: OriginRanges) => void, number[]]>> = {
  nothing: [() => {}, [60, 100]],
  "more arrives, which is not synced": [(ranges) => ranges.arrived(60, 80), [60, 100]],
  "all of it turns out wrong": [(ranges) => ranges.lost(rangeOf(0, 100)), [0, 100]],
  "a part turns out wrong": [(ranges) => ranges.lost(rangeOf(20, 30)), [20, 30]],
  "a program overwrites a part": [(ranges) => ranges.overwritten(70, 80), [60, 70, 80, 100]],
  "the file is truncated": [(ranges) => ranges.truncated(90), [60, 90]],
};

test.each(Object.entries(MEANWHILE))(
  "%s while fetched bytes are synced: the row lacks no range that is missing",
  async (_, [meanwhile, expected]) => {
    const { ranges, disk, synced, inRow } = begin();
    ranges.arrived(10, 60);
    const recorded = ranges.recordArrived(disk);
    meanwhile(ranges);
    synced.resolve();
    await recorded;
    expect(inRow()).toEqual(expected);
  },
);
