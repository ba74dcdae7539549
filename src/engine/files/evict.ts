/**
 * Eviction: keeps the cache within its limit and leaves room on the disk. The files that were unused for longest go,
 * because the gateway has their bytes. Never evicted are:
 * - dirty files, open files, and files that an upload reads (metadata/cache-files.ts selects);
 * - content that only one node has and that is about to leave that node.
 */
import { rangeOf } from "../../lib/ranges.ts";
import type { CacheFileRow } from "../../metadata/cache-files.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { alone } from "./file-state.ts";
import type { LocalFiles } from "./room.ts";

type Needs = Pick<Rows & Remote & Host, "metadata" | "client" | "log">;

/** Milliseconds from a close to the look. Summing the table costs something, so many closes share one look. */
const LOOK_MS = 1000;
const BATCH = 64;
/** Eviction goes on until the cache has this share of its limit, so that not every close evicts. */
const LOW_WATER = 0.95;

/** The cache may have grown: evicts soon, if it has to. */
export function evictSoon(context: Rows & LocalFiles & Remote & Host): void {
  const { fileState, runtime } = context;
  if (fileState.evictionTimer !== undefined || fileState.stopped.aborted) return;
  fileState.evictionTimer = runtime.setTimer(LOOK_MS, () => {
    context.background("eviction", async () => {
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
 * Brings the cache below its limits, and frees `atLeast` bytes, as far as there are files that may go. Free room is
 * counted from the last look at the disk. Resolves to the bytes freed. Rejects with errors of the disk or the rows.
 */
export async function evict(context: Rows & LocalFiles & Remote & Host, atLeast = 0): Promise<number> {
  const { metadata, settings, cacheFiles, runtime, fileState, disk } = context;
  const total = metadata.cacheFiles.totalBytes();
  const tooMany = total <= settings.cacheLimit ? 0 : total - settings.cacheLimit * LOW_WATER;
  const wanted = Math.max(tooMany, disk.lacking, atLeast);
  const tried = new Set<KernelNodeId>();
  let freed = 0;
  while (freed < wanted && !fileState.stopped.aborted) {
    const rows = metadata.cacheFiles.evictable(runtime.now(), BATCH + cacheFiles.size + tried.size);
    const candidates = rows
      .filter((row) => !cacheFiles.has(row.kernelNodeId) && !tried.has(row.kernelNodeId))
      .slice(0, BATCH);
    if (candidates.length === 0) break;
    for (const row of candidates) {
      if (freed >= wanted) break;
      tried.add(row.kernelNodeId);
      if (await dropCacheFile(context, row)) freed += row.bytes;
    }
  }
  return freed;
}

/**
 * Removes a cache file and its row. False: it may not go any more. The file goes first: a row without a file is made
 * anew at the next open, but a file without a row belongs to nothing known.
 */
export async function dropCacheFile(
  context: Rows & LocalFiles & Remote & Host,
  { kernelNodeId }: Pick<CacheFileRow, "kernelNodeId">,
): Promise<boolean> {
  const { metadata, runtime, paths, cacheFiles, fileState } = context;
  // After a rollback it is not known yet which versions the gateway still has.
  const isNeeded = () =>
    context.timeline.isRolledBack() ||
    cacheFiles.has(kernelNodeId) ||
    !metadata.cacheFiles.isEvictable(kernelNodeId) ||
    isLent(context, kernelNodeId);
  let isGone = false;
  // If the state dir is gone, its path may lead to another mount's files.
  if (context.disk.trouble === "gone") return false;
  await alone(context, kernelNodeId, async () => {
    if (isNeeded()) return;
    // The rows say that the gateway has the bytes. Power loss must not undo that once the bytes are gone here.
    await context.syncRows();
    if (isNeeded()) return;
    sayMissing(context, kernelNodeId);
    // The row goes after the file: on a full disk it can be changed only then.
    fileState.evicting.add(kernelNodeId);
    try {
      await runtime.files.remove(paths.cacheFile(kernelNodeId));
    } catch (error) {
      fileState.evicting.delete(kernelNodeId);
      throw error;
    }
    runtime.step("evict: file gone");
    // If the row cannot be removed, `evicting` keeps the id, and the row does not count until the file is made anew.
    if (metadata.cacheFiles.get(kernelNodeId) !== undefined) metadata.cacheFiles.remove(kernelNodeId);
    fileState.evicting.delete(kernelNodeId);
    runtime.step("evict: row gone");
    isGone = true;
  });
  return isGone;
}

/**
 * Where the gateway shows only heads, a row that says "all is here" is believed without a look at the file
 * (mayLeaveNode in tree/names.ts), also after a crash. So before the file goes, the row must say that all is missing.
 */
function sayMissing({ metadata, client, log }: Needs, kernelNodeId: KernelNodeId): void {
  const row = client.features.isFull ? undefined : metadata.cacheFiles.get(kernelNodeId);
  if (row === undefined) return;
  try {
    metadata.cacheFiles.update(kernelNodeId, { missing: rangeOf(0, row.size) });
  } catch (error) {
    log.debug({ err: error, lineage: kernelNodeId }, "a full disk takes no change of a row before the file has gone");
  }
}

/**
 * True: the content is on its way from one node to another. Where the gateway shows only heads, the content could not
 * be read any more once the first node gets other content or is deleted.
 */
function isLent({ metadata, client }: Needs, kernelNodeId: KernelNodeId): boolean {
  const inode = client.features.isFull ? undefined : metadata.inodes.ofKernelNodeId(kernelNodeId);
  if (inode === undefined || inode.kernelNodeId !== kernelNodeId) return false;
  return metadata.entries.ofInode(inode.id).some((entry) => {
    const base = metadata.nodes.ofEntry(entry.id)?.base;
    const isSame = inode.hash !== null && base?.hash === inode.hash;
    return !isSame && base?.head !== inode.originVersion;
  });
}
