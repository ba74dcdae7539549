/**
 * Passthrough: the kernel reads, writes and maps a local file by itself, and only OPEN, FLUSH, FSYNC and RELEASE come
 * to us. The first handle of a cache file decides whether the kernel or the daemon serves the file. That holds until
 * the last handle is gone, because the kernel refuses a mixture.
 *
 * A passthrough writer counts as writing at every moment. Before it is admitted, everything is done that must be done
 * before a first byte changes. Whenever the rows have to be true, write detection finds its writes by the file's size
 * and times (write-detection.ts).
 */
import type { BackingId } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { requireCurrent } from "./backing-file.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { logDirty } from "./dirty-file-log.ts";
import type { LocalFiles } from "./room.ts";
import { noLongerDurable, setContentDirty } from "./set-dirty.ts";
import { isTight } from "./space.ts";
import { statFile } from "./write-detection.ts";

const SET_ID = 0o6000;
/**
 * Free bytes of the disk. With fewer, there are no new passthrough writers: they would get ENOSPC before cached files
 * can be evicted.
 */
const WRITERS_ROOM = 1024 ** 3;

/**
 * Call it for each handle, once the file is open. Resolves to the backing id to answer with; undefined: we serve the
 * file. Rejects with ESTALE, or with errors of the disk or the rows. No handle is counted when it rejects.
 */
export async function attachPassthrough(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  write: boolean,
): Promise<BackingId | undefined> {
  const { descriptor } = cacheFile.disk.file;
  if (
    descriptor !== undefined &&
    cacheFile.passthrough.kernelHandles === 0 &&
    mayUsePassthrough(context, cacheFile) &&
    (!write || context.disk.available >= WRITERS_ROOM)
  ) {
    cacheFile.passthrough.register(context.passthrough.register(descriptor));
  }
  if (cacheFile.passthrough.attach(write)) {
    try {
      await admitWriter(context, cacheFile);
    } catch (error) {
      detachPassthrough(context, cacheFile, write);
      throw error;
    }
  }
  return cacheFile.passthrough.backingId;
}

/** Ends a handle that attachPassthrough counted. Call it before closeCacheFile. */
export function detachPassthrough(context: LocalFiles, cacheFile: OpenCacheFile, write: boolean): void {
  const backingId = cacheFile.passthrough.detach(write);
  if (backingId !== undefined) context.passthrough.unregister(backingId);
}

/**
 * True: passthrough is possible.
 * - All bytes must be here and known to be right, and the row must say so. Passthrough writes are not reported: after a
 *   crash, ranges that the row calls missing or unverified would be fetched over written bytes.
 * - Bytes must not have to be counted, for a quota or a limit of unsent bytes. The file must have no set-id bits, which
 *   a write would have to clear. Its content must not be quarantined.
 */
function mayUsePassthrough(context: Rows & LocalFiles & Remote, cacheFile: OpenCacheFile): boolean {
  const { passthrough, disk } = context;
  if (!passthrough.isOn) return false;
  if (
    !cacheFile.disk.isKept ||
    disk.trouble !== undefined ||
    cacheFile.ranges.missing.length > 0 ||
    !cacheFile.ranges.isChecked
  )
    return false;
  if (cacheFile.ranges.persistedMissing.length > 0 || cacheFile.ranges.unverified.length > 0) return false;
  const { synced, attributes } = requireCurrent(context, cacheFile.kernelNodeId);
  if (synced === "quarantined" || ((attributes.mode ?? 0) & SET_ID) !== 0) return false;
  return !isTight(context);
}

/** Admits a passthrough writer: after this resolves, bytes may change at any time without a message. */
export async function admitWriter(context: Rows & LocalFiles & Host, cacheFile: OpenCacheFile): Promise<void> {
  await cacheFile.passthrough.admitOnce(() => prepare(context, cacheFile));
}

async function prepare(context: Rows & LocalFiles & Host, cacheFile: OpenCacheFile): Promise<void> {
  if (cacheFile.passthrough.lastStat !== undefined) return;
  for (;;) {
    expectWrites(context, cacheFile);
    await context.dirtyLog.flush();
    if (cacheFile.changes.isDurable) await noLongerDurable(context, cacheFile);
    const { changes } = requireCurrent(context, cacheFile.kernelNodeId);
    const taken = await statFile(context, cacheFile);
    // An earlier snapshot or sync may have ended during the wait and stored in the rows that the file is unchanged.
    const isSaid =
      !cacheFile.changes.isDurable &&
      requireCurrent(context, cacheFile.kernelNodeId).changes === changes &&
      isExpected(context, cacheFile);
    if (!isSaid) continue;
    cacheFile.passthrough.statTaken(taken);
    break;
  }
  context.runtime.step("passthrough: writer admitted");
}

/** True: the rows say already that the file may change. */
function isExpected(context: Rows, cacheFile: OpenCacheFile): boolean {
  return cacheFile.changes.isContentDirty || requireCurrent(context, cacheFile.kernelNodeId).content !== "dirty";
}

/** Stores in rows and dirty-file log that the file may change, so that both say so after a crash. */
function expectWrites(context: Rows & Host, cacheFile: OpenCacheFile): void {
  const { metadata } = context;
  const inode = requireCurrent(context, cacheFile.kernelNodeId);
  if (inode.content === "dirty") {
    if (!cacheFile.changes.isContentDirty) setContentDirty(context, cacheFile);
    return;
  }
  // The content is "open" since the writer was admitted. After a crash its hash tells whether it was written.
  logDirty(context, metadata.inodes.update(inode.id, { changes: inode.changes + 1 }), cacheFile);
}
