/**
 * The limits of the cache, its size and what it leaves free of the disk: local files that were not
 * used for longest go, their bytes being the gateway's.
 * Never dirty ones, open ones, or ones an upload reads (metadata/cache-files.ts selects), nor what only
 * a node has that it is about to leave.
 */
import { formatRanges, rangeOf } from "../../lib/ranges.ts";
import type { CacheFileRow } from "../../metadata/cache-files.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import {
  alone,
  type Host,
  inBackground,
  isRolledBack,
  type LocalFiles,
  type Remote,
  type Rows,
} from "../core/index.ts";

type Needs = Pick<
  Rows & LocalFiles & Remote & Host,
  "metadata" | "client" | "runtime" | "paths" | "settings" | "cacheFiles" | "fileState" | "log" | "disk" | "syncRows"
>;

/** Adding up the table costs something: many closes share one look. */
const LOOK_MS = 1000;
const BATCH = 64;
/** Evicting goes on to this part of the limit, so that not every close evicts. */
const LOW_WATER = 0.95;

/** The cache may have grown. */
export function evictSoon(context: Needs): void {
  const { fileState, runtime } = context;
  if (fileState.evictionTimer !== undefined || fileState.stopped.signal.aborted) return;
  fileState.evictionTimer = runtime.setTimer(LOOK_MS, () => {
    inBackground(context, "eviction", async () => {
      try {
        context.disk.look();
        await evict(context);
      } finally {
        fileState.evictionTimer = undefined;
      }
    });
  });
}

/**
 * Brings the cache below its limits, and sets `atLeast` bytes free, as far as there is anything that
 * may go. How many bytes went. What is free is what the last look at the disk said.
 */
export async function evict(context: Needs, atLeast = 0): Promise<number> {
  const { metadata, settings, cacheFiles, runtime, fileState, disk } = context;
  const total = metadata.cacheFiles.totalBytes();
  const tooMany = total <= settings.cacheLimit ? 0 : total - settings.cacheLimit * LOW_WATER;
  const wanted = Math.max(tooMany, disk.lacking, atLeast);
  const passed = new Set<KernelNodeId>();
  let freed = 0;
  while (freed < wanted && !fileState.stopped.signal.aborted) {
    const rows = metadata.cacheFiles.evictable(runtime.now(), BATCH + cacheFiles.size + passed.size);
    const candidates = rows.filter((row) => !cacheFiles.has(row.lineage) && !passed.has(row.lineage)).slice(0, BATCH);
    if (candidates.length === 0) break;
    for (const row of candidates) {
      if (freed >= wanted) break;
      passed.add(row.lineage);
      if (await dropCacheFile(context, row)) freed += row.bytes;
    }
  }
  return freed;
}

/**
 * Removes file and row of a live file, if it may still go once its turn has come; false if not. The
 * file goes first: a row without a file is made anew when opened, a file without a row is an orphan.
 */
export async function dropCacheFile(context: Needs, { lineage }: Pick<CacheFileRow, "lineage">): Promise<boolean> {
  const { metadata, runtime, paths, cacheFiles, fileState } = context;
  // While the gateway's past is another one, what it has is yet to be asked.
  const isNeeded = () =>
    isRolledBack(context) ||
    cacheFiles.has(lineage) ||
    !metadata.cacheFiles.isEvictable(lineage) ||
    isLent(context, lineage);
  let isGone = false;
  // By the name of a state dir that was moved away another mount's files may be found.
  if (context.disk.trouble === "gone") return false;
  await alone(context, lineage, async () => {
    if (isNeeded()) return;
    // That the gateway has the bytes must not be undone by power loss once they are gone here.
    await context.syncRows();
    if (isNeeded()) return;
    sayMissing(context, lineage);
    // Its row goes later: on a full disk that can be written when the file has gone.
    fileState.evicting.add(lineage);
    try {
      await runtime.files.remove(paths.cacheFile(lineage));
    } catch (error) {
      fileState.evicting.delete(lineage);
      throw error;
    }
    runtime.step("evict: file gone");
    // Where it cannot go, what it says does not count until it is made anew.
    if (metadata.cacheFiles.get(lineage) !== undefined) metadata.cacheFiles.remove(lineage);
    fileState.evicting.delete(lineage);
    runtime.step("evict: row gone");
    isGone = true;
  });
  return isGone;
}

/**
 * Where the gateway shows only heads a row that says that all is here is believed without a look at the file
 * (identity.ts), also by who comes after a crash.
 */
function sayMissing({ metadata, client, log }: Needs, lineage: KernelNodeId): void {
  const row = client.features.versions ? undefined : metadata.cacheFiles.get(lineage);
  if (row === undefined) return;
  try {
    metadata.cacheFiles.update(lineage, { missing: formatRanges(rangeOf(0, row.size)) });
  } catch (error) {
    log.debug({ err: error, lineage }, "a full disk takes no change of a row before the file has gone");
  }
}

/**
 * The content is on its way from the node that has it to another one. Where the gateway shows only
 * heads, nobody could read it any more once that node has another one, or is deleted.
 */
function isLent({ metadata, client }: Needs, lineage: KernelNodeId): boolean {
  const inode = client.features.versions ? undefined : metadata.inodes.ofKernelNodeId(lineage);
  if (inode === undefined || inode.lineage !== lineage) return false;
  return metadata.entries.ofInode(inode.id).some((entry) => {
    const base = metadata.nodes.ofEntry(entry.id)?.base;
    const isSame = inode.hash !== null && base?.hash === inode.hash;
    return !isSame && base?.head !== inode.originVersion;
  });
}
