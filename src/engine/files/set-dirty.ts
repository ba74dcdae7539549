/** What the rows say before a byte of a live file changes: that it is dirty, and no longer safe. */
import type { Inode } from "../../metadata/inodes.ts";
import { FsError } from "../api/index.ts";
import { type CacheFile, type Host, type Rows, setInodeDirty, type Uploads } from "../core/index.ts";
import { logDirty } from "./dirty-file-log.ts";
import { leaveOrigin } from "./missing-ranges.ts";

/** The rows say dirty, durably, before the first byte changes since the last cut or clean state. `at`: when it changed, as Runtime.elapsed(). */
export function setContentDirty(
  context: Rows & Uploads & Host,
  cacheFile: CacheFile,
  at = context.runtime.elapsed(),
): void {
  const { metadata, runtime } = context;
  if (!cacheFile.changes.isContentDirty) {
    let marked: Inode | undefined;
    let {
      ranges: { unverified },
    } = cacheFile;
    metadata.transaction(() => {
      const inode = metadata.inodes.get(cacheFile.inode);
      if (inode === undefined || inode.lineage !== cacheFile.lineage) {
        throw new FsError("ESTALE", `lineage ${cacheFile.lineage} is superseded`);
      }
      marked = metadata.inodes.update(inode.id, { content: "dirty", changes: inode.changes + 1, hash: null });
      if (metadata.detachedFiles.get(inode.id)?.dirtySince === null) {
        metadata.detachedFiles.setDirtySince(inode.id, runtime.now());
      }
      unverified = leaveOrigin(context, cacheFile);
      setInodeDirty(context, inode.id);
    });
    cacheFile.ranges.unverified = unverified;
    cacheFile.ranges.isChecked &&= unverified.length === 0;
    if (marked !== undefined) logDirty(context, marked, cacheFile);
    runtime.step("write: marked dirty");
    cacheFile.changes.isContentDirty = true;
    cacheFile.changes.firstWriteAt = undefined;
  }
  cacheFile.ranges.isOriginal = false;
  cacheFile.changes.hasUnpersistedStat = true;
  cacheFile.changes.writes += 1;
  cacheFile.changes.lastWriteAt = Math.max(cacheFile.changes.lastWriteAt, at);
  cacheFile.changes.firstWriteAt ??= cacheFile.changes.lastWriteAt;
}

/** Power loss may come when some of the new bytes are on the disk: it must not find them counted as whole. */
export async function noLongerDurable(context: Rows, cacheFile: CacheFile): Promise<void> {
  const inode = context.metadata.inodes.get(cacheFile.inode);
  if (inode?.lineage === cacheFile.lineage && inode.synced !== null) {
    context.metadata.inodes.update(inode.id, { synced: 0 });
  }
  await context.syncRows();
  // A cut that ended meanwhile has said it again.
  cacheFile.changes.isDurable = context.metadata.inodes.get(cacheFile.inode)?.synced === 1;
}

/** A snapshot has what was written so far. `isDurable`: power loss leaves the content as it is, and nobody writes unheard. */
export function setContentClean({ changes }: CacheFile, isDurable: boolean): void {
  changes.isContentDirty = false;
  changes.isDurable = isDurable;
  changes.firstWriteAt = undefined;
}
