/** Rows of cache files, and the files that may be evicted. */
import type { RowTime } from "../lib/clocks.ts";
import { formatRanges, isSameRanges, NO_RANGES, parseRanges, type Ranges } from "../lib/ranges.ts";
import { type Connection, differences, prepare, prepareColumn, prepareUpdates, remember } from "./database.ts";
import type { After, KernelNodeId } from "./ids.ts";

export interface CacheFileRow {
  readonly kernelNodeId: KernelNodeId;
  /** The version to which missing ranges belong. */
  readonly originNode: string | null;
  readonly originVersion: string | null;
  /** The hash of that version, also after the file has changed. Null: not known. */
  readonly originHash: string | null;
  /** The size of that version, in bytes. Set only while there are unverified ranges. */
  readonly originSize: number;
  /** The size when the file was last closed, in bytes. While the file is open, its own size counts. */
  readonly size: number;
  /** Bytes that the file holds on the disk. They count for the cache limit. */
  readonly bytes: number;
  /** Missing ranges of the origin version. Undefined: the row has a text that is no ranges. */
  readonly missing: Ranges | undefined;
  /** Unverified ranges of changed content, on this disk or missing. Undefined as above. */
  readonly unverified: Ranges | undefined;
  /** When it was last used, in row time. */
  readonly usedAt: RowTime;
  /** True: the machine went down since the file was written, so clean bytes must be checked before use. */
  readonly mustBeChecked: boolean;
}

/** True if every byte of the file is on this disk. False without a row. */
export const isWhole = (row: CacheFileRow | undefined): boolean => row?.missing?.length === 0;
/** True if the file has no unverified range. False without a row. */
export const isVerified = (row: CacheFileRow | undefined): boolean => row?.unverified?.length === 0;

/** A row as it is stored: ranges are JSON of lib/ranges.ts. */
interface Row extends Omit<CacheFileRow, "missing" | "unverified" | "mustBeChecked"> {
  readonly missing: string;
  readonly unverified: string;
  readonly mustBeChecked: 0 | 1;
}

/** The text for no ranges, which most rows have. */
const NONE = formatRanges(NO_RANGES);
const rangesOf = (text: string): Ranges | undefined => (text === NONE ? NO_RANGES : parseRanges(text));
const textOf = (ranges: Ranges): string => (ranges.length === 0 ? NONE : formatRanges(ranges));

const isOther = (before: Ranges | undefined, now: Ranges | undefined): now is Ranges =>
  now !== undefined && (before === undefined || !isSameRanges(before, now));

const decode = (row: Row): CacheFileRow => ({
  ...row,
  missing: rangesOf(row.missing),
  unverified: rangesOf(row.unverified),
  mustBeChecked: row.mustBeChecked === 1,
});

const COLUMNS = `live.lineage AS kernelNodeId, live.origin_node AS originNode, live.origin_version AS originVersion,
  live.origin_hash AS originHash, live.origin_size AS originSize, live.size, live.bytes, live.missing,
  live.unproven AS unverified, live.used_at AS usedAt, live.doubted AS mustBeChecked`;

/** The fields of a row that can be set. */
export interface Fields extends Omit<CacheFileRow, "kernelNodeId" | "missing" | "unverified"> {
  readonly missing: Ranges;
  readonly unverified: Ranges;
}

/** Fields that most new rows do not set. */
type OfOrigin = "originHash" | "originSize" | "unverified";
type Made = Omit<Fields, "mustBeChecked" | OfOrigin> &
  Partial<Pick<Fields, OfOrigin>> &
  Pick<CacheFileRow, "kernelNodeId">;

export function createCacheFileRows(database: Connection) {
  const byKernelNodeId = prepare<Row>(database, `SELECT ${COLUMNS} FROM live WHERE lineage = ?`);
  // Not evictable are dirty files (no origin has their content), files that an upload reads, and open files. Only the
  // caller knows the open files.
  const fromEvictable = `FROM live JOIN lineage ON lineage.id = live.lineage JOIN inode ON inode.id = lineage.inode
     WHERE live.bytes > 0 AND live.origin_version IS NOT NULL
       AND (inode.lineage <> live.lineage OR inode.content = 'clean')
       AND NOT EXISTS (SELECT 1 FROM generation WHERE generation.lineage = live.lineage)`;
  const evictable = prepare<Row>(
    database,
    `SELECT ${COLUMNS} ${fromEvictable} AND live.used_at <= ? ORDER BY live.used_at LIMIT +?`,
  );
  const oneEvictable = prepare(database, `SELECT 1 ${fromEvictable} AND live.lineage = ?`);
  const total = prepare<{ bytes: number }>(database, "SELECT bytes FROM held");
  const among = prepare<{ kernelNodeId: KernelNodeId; bytes: number }>(
    database,
    "SELECT lineage AS kernelNodeId, bytes FROM live WHERE lineage >= ? AND lineage < ?",
  );
  const next = prepare<{ kernelNodeId: KernelNodeId | null }>(
    database,
    "SELECT min(lineage) AS kernelNodeId FROM live WHERE lineage >= ?",
  );
  const whole = prepareColumn<KernelNodeId>(
    database,
    `SELECT lineage FROM live WHERE lineage > ? AND origin_version IS NOT NULL AND missing = '[]'
     ORDER BY lineage LIMIT +?`,
  );
  const insert = prepare(
    database,
    `INSERT INTO live (lineage, origin_node, origin_version, origin_hash, origin_size, size, bytes, missing, unproven,
       used_at)
     VALUES (@kernelNodeId, @originNode, @originVersion, @originHash, @originSize, @size, @bytes, @missing, @unverified,
       @usedAt)`,
    [],
  );
  const change = prepareUpdates(database, "live", "lineage", {
    originNode: "origin_node",
    originVersion: "origin_version",
    originHash: "origin_hash",
    originSize: "origin_size",
    size: "size",
    bytes: "bytes",
    missing: "missing",
    unverified: "unproven",
    usedAt: "used_at",
    mustBeChecked: "doubted",
  });
  const markAllForCheck = prepare(database, "UPDATE live SET doubted = 1");
  const remove = prepare(database, "DELETE FROM live WHERE lineage = ?", []);
  const get = remember(database, ["live"], (kernelNodeId: KernelNodeId) => {
    const row = byKernelNodeId.get(kernelNodeId);
    return row === undefined ? undefined : decode(row);
  });
  return {
    get,
    /** Kernel node ids from `from` on and below `to`, with the bytes that their files hold on the disk. */
    among: (from: number, to: number): { kernelNodeId: KernelNodeId; bytes: number }[] => among.all(from, to),
    /** The first kernel node id from this one on that has a row. */
    next: (from: number): KernelNodeId | undefined => next.get(from)?.kernelNodeId ?? undefined,
    /** Kernel node ids after this one whose cache file is complete and is, or was, a version of the gateway. */
    whole: (after: After<KernelNodeId>, limit: number): KernelNodeId[] => whole(after, limit),
    totalBytes: (): number => total.get()?.bytes ?? 0,
    /** Returns files that were not used after `before` (row time), the least recently used first. */
    evictable: (before: RowTime, limit: number): CacheFileRow[] => evictable.all(before, limit).map(decode),
    /** True if the gateway has the whole content of the file and no upload reads the file. */
    isEvictable: (kernelNodeId: KernelNodeId): boolean => oneEvictable.get(kernelNodeId) !== undefined,
    create(row: Made): void {
      const { kernelNodeId, originNode, originVersion, size, bytes, missing, usedAt } = row;
      const { originHash = null, originSize = 0, unverified = NO_RANGES } = row;
      // Each field is written out, because spreading objects takes far longer, and every new file comes by here.
      const made: CacheFileRow = {
        kernelNodeId,
        originNode,
        originVersion,
        originHash,
        originSize,
        size,
        bytes,
        missing,
        unverified,
        usedAt,
        mustBeChecked: false,
      };
      insert.run({
        kernelNodeId,
        originNode,
        originVersion,
        originHash,
        originSize,
        size,
        bytes,
        missing: textOf(missing),
        unverified: textOf(unverified),
        usedAt,
      });
      get.tell(kernelNodeId, made);
    },
    markAllForCheck(): void {
      markAllForCheck.run();
    },
    update(kernelNodeId: KernelNodeId, changed: Partial<Fields>): void {
      const current = get(kernelNodeId);
      if (current === undefined) throw new Error(`no cache file of kernel node id ${kernelNodeId}`);
      const next = { ...current, ...changed };
      const { missing, unverified, mustBeChecked, ...others } = changed;
      const columns: Partial<Record<keyof Row, unknown>> = differences(current, { ...current, ...others });
      if (isOther(current.missing, missing)) columns.missing = textOf(missing);
      if (isOther(current.unverified, unverified)) columns.unverified = textOf(unverified);
      if (mustBeChecked !== undefined && mustBeChecked !== current.mustBeChecked)
        columns.mustBeChecked = mustBeChecked ? 1 : 0;
      change(kernelNodeId, columns);
      get.tell(kernelNodeId, next);
    },
    remove(kernelNodeId: KernelNodeId): void {
      remove.run(kernelNodeId);
      get.tell(kernelNodeId, undefined);
    },
  };
}
