/** Bytes of a live file, and its name, made to survive power loss; its row says so. The rows are the caller's to sync. */
import { QUARANTINED } from "../../metadata/inodes.ts";
import type { CacheFile, Host, LocalFiles, Rows, Uploads } from "../core/index.ts";
import { rowsFromFile, syncName } from "./open-close.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";

export async function makeDurable(context: Rows & LocalFiles & Uploads & Host, live: CacheFile): Promise<void> {
  await rowsFromFile(context, live);
  revokeWriteLeases(context, live);
  const {
    changes: { writes, inFlight },
    passthrough: { lastStat },
  } = live;
  await live.disk.sync();
  context.runtime.step("fsync: bytes synced");
  await syncName(context, live);
  const isAll = inFlight === 0 && live.changes.writes === writes;
  // One who passes us by may be writing again: the rows are told when there is none any more.
  nowSafe(
    context,
    live,
    isAll &&
      lastStat === undefined &&
      live.passthrough.lastStat === undefined &&
      live.passthrough.admittingWriter === undefined,
  );
  live.passthrough.durableStat = isAll && live.passthrough.isLastStatExact ? lastStat : undefined;
}

/** `isAll`: nothing was written while it was synced. */
function nowSafe(context: Rows, live: CacheFile, isAll: boolean): void {
  const inode = context.metadata.inodes.get(live.inode);
  if (inode?.lineage !== live.lineage || inode.content === "clean") return;
  const isKnown = inode.content !== "dirty" || inode.synced === QUARANTINED;
  const synced = isKnown ? inode.synced : isAll ? 1 : (inode.synced ?? 0);
  if (synced !== inode.synced || inode.fsynced === 0) context.metadata.inodes.update(inode.id, { synced, fsynced: 1 });
  if (!isKnown) live.changes.isDurable ||= isAll;
}
