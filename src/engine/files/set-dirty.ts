/** Before a byte of a cache file changes, the rows say that the content is dirty and no longer durable. */
import type { Inode } from "../../metadata/inodes.ts";
import { FsError } from "../api/index.ts";
import type { Host, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { logDirty } from "./dirty-file-log.ts";

/**
 * Counts a change. Before the first one since the last snapshot or clean state, it sets the content dirty in the rows.
 * `at`: the time of the change. Throws ESTALE when the kernel node id is superseded.
 */
export function setContentDirty(context: Rows & Host, cacheFile: OpenCacheFile, at = context.runtime.elapsed()): void {
  const { metadata, runtime } = context;
  if (!cacheFile.changes.isContentDirty) {
    let marked: Inode | undefined;
    let { unverified } = cacheFile.ranges;
    metadata.transaction(() => {
      const inode = metadata.inodes.get(cacheFile.inode);
      if (inode === undefined || inode.kernelNodeId !== cacheFile.kernelNodeId) {
        throw new FsError("ESTALE", `kernel node id ${cacheFile.kernelNodeId} is superseded`);
      }
      marked = metadata.inodes.update(inode.id, { content: "dirty", changes: inode.changes + 1, hash: null });
      if (metadata.detachedFiles.get(inode.id)?.dirtySince === null) {
        metadata.detachedFiles.setDirtySince(inode.id, runtime.now());
      }
      unverified = cacheFile.ranges.leaveOrigin();
      context.queue.setInodeDirty(inode.id);
    });
    cacheFile.ranges.contentChanged(unverified);
    if (marked !== undefined) logDirty(context, marked, cacheFile);
    runtime.step("write: marked dirty");
    cacheFile.changes.contentIsDirty();
  }
  cacheFile.ranges.noLongerOriginal();
  cacheFile.changes.count(at);
}

/**
 * Resolves when the row on the disk says that the content is not durable. Otherwise a power loss could come when only
 * some of the new bytes are on the disk, and the row would call them durable.
 */
export async function noLongerDurable(context: Rows, cacheFile: OpenCacheFile): Promise<void> {
  const inode = context.metadata.inodes.get(cacheFile.inode);
  if (inode?.kernelNodeId === cacheFile.kernelNodeId && inode.synced !== "never") {
    context.metadata.inodes.update(inode.id, { synced: "formerly" });
  }
  await context.syncRows();
  // A snapshot that ended meanwhile may have made the row say "durable" again.
  cacheFile.changes.setDurable(context.metadata.inodes.get(cacheFile.inode)?.synced === "durable");
}
