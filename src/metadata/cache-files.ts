/** Rows of cache files: the bytes on this disk behind a kernel node id, and the files that may be evicted. */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, differences, prepare, prepareColumn, prepareUpdates, remember } from "./database.ts";
import type { After, KernelNodeId } from "./ids.ts";

export interface CacheFileRow {
  readonly lineage: KernelNodeId;
  /** The version to which missing ranges belong. */
  readonly originNode: string | null;
  readonly originVersion: string | null;
  /** The hash of that version, also once the file has changed. Null: not known. */
  readonly originHash: string | null;
  /** The size of that version, in bytes. Set only while there are unverified ranges. */
  readonly originSize: number;
  /** The size when the file was last closed, in bytes. While the file is open, its own size counts. */
  readonly size: number;
  /** Bytes that the file holds on the disk. They count for the cache limit. */
  readonly bytes: number;
  /** Missing ranges of the origin version. JSON of lib/ranges.ts. */
  readonly missing: string;
  /** Unverified ranges of changed content, here or missing. JSON of lib/ranges.ts. */
  readonly unproven: string;
  /** When it was last used, in row time. */
  readonly usedAt: RowTime;
  /** 1: the machine went down since the file was written. Clean bytes must then be checked before use. */
  readonly doubted: 0 | 1;
}

/** True if every byte of the file is on this disk. False without a row. */
export const isWhole = (row: CacheFileRow | undefined): boolean => row?.missing === NO_RANGES;
/** True if no byte of the file remains to be verified. False without a row. */
export const isProven = (row: CacheFileRow | undefined): boolean => row?.unproven === NO_RANGES;

/** No ranges, as stored in a row. */
const NO_RANGES = "[]";

const COLUMNS = `live.lineage, live.origin_node AS originNode, live.origin_version AS originVersion,
  live.origin_hash AS originHash, live.origin_size AS originSize, live.size, live.bytes, live.missing, live.unproven,
  live.used_at AS usedAt, live.doubted`;

/** Most rows are made without these. */
type OfOrigin = "originHash" | "originSize" | "unproven";
type Made = Omit<CacheFileRow, "doubted" | OfOrigin> & Partial<Pick<CacheFileRow, OfOrigin>>;

export function createCacheFileRows(database: Connection) {
  const byKernelNodeId = prepare<CacheFileRow>(database, `SELECT ${COLUMNS} FROM live WHERE lineage = ?`);
  // Not evictable are dirty files (no origin has their content), files that an upload reads, and open files. The caller
  // knows which files are open.
  const fromEvictable = `FROM live JOIN lineage ON lineage.id = live.lineage JOIN inode ON inode.id = lineage.inode
     WHERE live.bytes > 0 AND live.origin_version IS NOT NULL
       AND (inode.lineage <> live.lineage OR inode.content = 'clean')
       AND NOT EXISTS (SELECT 1 FROM generation WHERE generation.lineage = live.lineage)`;
  const evictable = prepare<CacheFileRow>(
    database,
    `SELECT ${COLUMNS} ${fromEvictable} AND live.used_at <= ? ORDER BY live.used_at LIMIT +?`,
  );
  const oneEvictable = prepare(database, `SELECT 1 ${fromEvictable} AND live.lineage = ?`);
  const total = prepare<{ bytes: number }>(database, "SELECT bytes FROM held");
  const among = prepare<{ lineage: KernelNodeId; bytes: number }>(
    database,
    "SELECT lineage, bytes FROM live WHERE lineage >= ? AND lineage < ?",
  );
  const next = prepare<{ lineage: KernelNodeId | null }>(
    database,
    "SELECT min(lineage) AS lineage FROM live WHERE lineage >= ?",
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
     VALUES (@lineage, @originNode, @originVersion, @originHash, @originSize, @size, @bytes, @missing, @unproven,
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
    unproven: "unproven",
    usedAt: "used_at",
    doubted: "doubted",
  });
  const doubtAll = prepare(database, "UPDATE live SET doubted = 1");
  const remove = prepare(database, "DELETE FROM live WHERE lineage = ?", []);
  const get = remember(database, ["live"], (lineage: KernelNodeId) => byKernelNodeId.get(lineage));
  return {
    get,
    /** Kernel node ids from `from` on and below `to`. */
    among: (from: number, to: number): { lineage: KernelNodeId; bytes: number }[] => among.all(from, to),
    /** The first kernel node id from this one on that has a row. */
    next: (from: number): KernelNodeId | undefined => next.get(from)?.lineage ?? undefined,
    /** Kernel node ids after this one whose cache file is complete and is, or was, a version of the gateway. */
    whole: (after: After<KernelNodeId>, limit: number): KernelNodeId[] => whole(after, limit),
    totalBytes: (): number => total.get()?.bytes ?? 0,
    /** Returns files that were not used after `before` (row time), the least recently used first. */
    evictable: (before: RowTime, limit: number): CacheFileRow[] => evictable.all(before, limit),
    /** True if the gateway has the whole content of the file and no upload reads the file. */
    isEvictable: (lineage: KernelNodeId): boolean => oneEvictable.get(lineage) !== undefined,
    create(row: Made): void {
      const { lineage, originNode, originVersion, size, bytes, missing, usedAt } = row;
      const { originHash = null, originSize = 0, unproven: unverified = NO_RANGES } = row;
      // Each field is written out: spreading other objects takes far longer, and every new file needs this object.
      const made: CacheFileRow = {
        lineage,
        originNode,
        originVersion,
        originHash,
        originSize,
        size,
        bytes,
        missing,
        unproven: unverified,
        usedAt,
        doubted: 0,
      };
      insert.run(made);
      get.tell(lineage, made);
    },
    doubtAll(): void {
      doubtAll.run();
    },
    update(lineage: KernelNodeId, changed: Partial<Omit<CacheFileRow, "lineage">>): void {
      const current = get(lineage);
      if (current === undefined) throw new Error(`no cache file of kernel node id ${lineage}`);
      const next = { ...current, ...changed };
      change(lineage, differences(current, next));
      get.tell(lineage, next);
    },
    remove(lineage: KernelNodeId): void {
      remove.run(lineage);
      get.tell(lineage, undefined);
    },
  };
}
