/**
 * Makes the bytes and the name of a cache file durable, and then says so in its row. The caller syncs the rows. Rejects
 * when the disk or the rows refuse.
 */
import type { Host, Kernel, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { persistStat, syncName } from "./open-close.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";
import type { LocalFiles } from "./room.ts";

export async function makeDurable(context: Rows & LocalFiles & Kernel & Host, cacheFile: OpenCacheFile): Promise<void> {
  await persistStat(context, cacheFile);
  revokeWriteLeases(context, cacheFile);
  const {
    changes: { writes, inFlight },
    passthrough: { lastStat },
  } = cacheFile;
  await cacheFile.disk.sync();
  context.runtime.step("fsync: bytes synced");
  await syncName(context, cacheFile);
  const isAll = inFlight === 0 && cacheFile.changes.writes === writes;
  // A passthrough writer may be writing again, so the row says "durable" only if there is none.
  recordSync(
    context,
    cacheFile,
    isAll &&
      lastStat === undefined &&
      cacheFile.passthrough.lastStat === undefined &&
      !cacheFile.passthrough.isAdmitting,
  );
  cacheFile.passthrough.synced(isAll && lastStat?.isExact === true ? lastStat.stat : undefined);
}

/** Records the sync in the row. `isAll`: the synced content is the present one. */
function recordSync(context: Rows, cacheFile: OpenCacheFile, isAll: boolean): void {
  const inode = context.metadata.inodes.get(cacheFile.inode);
  if (inode?.kernelNodeId !== cacheFile.kernelNodeId || inode.content === "clean") return;
  const isKnown = inode.content !== "dirty" || inode.synced === "quarantined";
  const before = inode.synced === "never" ? "formerly" : inode.synced;
  const synced = isKnown ? inode.synced : isAll ? "durable" : before;
  if (synced !== inode.synced || !inode.isFsynced) {
    context.metadata.inodes.update(inode.id, { synced, isFsynced: true });
  }
  if (!isKnown && isAll) cacheFile.changes.setDurable(true);
}
