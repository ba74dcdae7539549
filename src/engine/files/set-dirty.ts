/** What the rows say before a byte of a live file changes: that it is dirty, and no longer safe. */
import type { Inode } from "../../metadata/inodes.ts";
import { FsError } from "../api/index.ts";
import { type CacheFile, type Host, type Rows, setInodeDirty, type Uploads } from "../core/index.ts";
import { logDirty } from "./dirty-file-log.ts";
import { leaveOrigin } from "./missing-ranges.ts";

/** The rows say dirty, durably, before the first byte changes since the last cut or clean state. `at`: when it changed, as Runtime.elapsed(). */
export function setContentDirty(context: Rows & Uploads & Host, live: CacheFile, at = context.runtime.elapsed()): void {
  const { metadata, runtime } = context;
  if (!live.changes.isContentDirty) {
    let marked: Inode | undefined;
    let {
      ranges: { unverified },
    } = live;
    metadata.transaction(() => {
      const inode = metadata.inodes.get(live.inode);
      if (inode === undefined || inode.lineage !== live.lineage) {
        throw new FsError("ESTALE", `lineage ${live.lineage} is superseded`);
      }
      marked = metadata.inodes.update(inode.id, { content: "dirty", changes: inode.changes + 1, hash: null });
      if (metadata.overtaken.get(inode.id)?.dirtySince === null) {
        metadata.overtaken.setDirtySince(inode.id, runtime.now());
      }
      unverified = leaveOrigin(context, live);
      setInodeDirty(context, inode.id);
    });
    live.ranges.unverified = unverified;
    live.ranges.isChecked &&= unverified.length === 0;
    if (marked !== undefined) logDirty(context, marked, live);
    runtime.step("write: marked dirty");
    live.changes.isContentDirty = true;
    live.changes.firstWriteAt = undefined;
  }
  live.ranges.isOriginal = false;
  live.changes.hasUnpersistedStat = true;
  live.changes.writes += 1;
  live.changes.lastWriteAt = Math.max(live.changes.lastWriteAt, at);
  live.changes.firstWriteAt ??= live.changes.lastWriteAt;
}

/** Power loss may come when some of the new bytes are on the disk: it must not find them counted as whole. */
export async function noLongerDurable(context: Rows, live: CacheFile): Promise<void> {
  const inode = context.metadata.inodes.get(live.inode);
  if (inode?.lineage === live.lineage && inode.synced !== null) {
    context.metadata.inodes.update(inode.id, { synced: 0 });
  }
  await context.syncRows();
  // A cut that ended meanwhile has said it again.
  live.changes.isDurable = context.metadata.inodes.get(live.inode)?.synced === 1;
}

/** A snapshot has what was written so far. `isDurable`: power loss leaves the content as it is, and nobody writes unheard. */
export function setContentClean({ changes }: CacheFile, isDurable: boolean): void {
  changes.isContentDirty = false;
  changes.isDurable = isDurable;
  changes.firstWriteAt = undefined;
}
