/**
 * Passthrough: the kernel reads, writes and maps a local file by itself, and we hear of OPEN, FLUSH, FSYNC and RELEASE
 * only. The first handle of a cache file decides between passthrough and serving it ourselves, and that holds until the
 * last handle is gone: the kernel refuses a mixture.
 *
 * A passthrough writer counts as writing at every moment. Before it is admitted, everything is done that must be done
 * before a first byte changes. Whether it wrote is found out from the file's size and times whenever the rows have to
 * be true (write-detection.ts).
 */
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";
import { requireCurrent } from "./backing-file.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { logDirty } from "./dirty-file-log.ts";
import type { LocalFiles } from "./room.ts";
import { noLongerDurable, setContentDirty } from "./set-dirty.ts";
import { isTight } from "./space.ts";
import { remember, statFile } from "./write-detection.ts";

const SET_ID = 0o6000;
/**
 * Free bytes of the disk. With fewer, a writer may hear that the disk is full before the disk is looked at and cached
 * files are evicted.
 */
const WRITERS_ROOM = 1024 ** 3;

/**
 * Call it for each handle, once the file is open. Resolves to the backing id to answer with; undefined: we serve the
 * file. Rejects with an FsError, and then has counted no handle.
 */
export async function attachPassthrough(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  write: boolean,
): Promise<number | undefined> {
  const { descriptor } = cacheFile.disk.file;
  if (
    descriptor !== undefined &&
    cacheFile.passthrough.kernelHandles === 0 &&
    mayUsePassthrough(context, cacheFile) &&
    (!write || context.disk.available >= WRITERS_ROOM)
  ) {
    cacheFile.passthrough.backingId = context.passthrough.register(descriptor);
  }
  cacheFile.passthrough.kernelHandles += 1;
  if (cacheFile.passthrough.backingId !== undefined && write) {
    cacheFile.passthrough.passthroughWriters += 1;
    try {
      await admitWriter(context, cacheFile);
    } catch (error) {
      detachPassthrough(context, cacheFile, write);
      throw error;
    }
  }
  return cacheFile.passthrough.backingId;
}

/** The end of a handle. Call it before closeCacheFile. */
export function detachPassthrough(context: LocalFiles, cacheFile: OpenCacheFile, write: boolean): void {
  if (cacheFile.passthrough.backingId !== undefined && write) cacheFile.passthrough.passthroughWriters -= 1;
  cacheFile.passthrough.kernelHandles -= 1;
  if (cacheFile.passthrough.kernelHandles > 0 || cacheFile.passthrough.backingId === undefined) return;
  context.passthrough.unregister(cacheFile.passthrough.backingId);
  cacheFile.passthrough.backingId = undefined;
}

/**
 * The kernel may have the file on these conditions. All bytes must be here and known to be right, and the row must say
 * so. The kernel's writes are not reported: after a crash, ranges that the row calls missing or unverified would be
 * fetched over what was written. And if a program writes to it, now or later: its bytes are not counted, no change has
 * to clear bits of the mode, and the content is not quarantined.
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
  const { synced, attributes } = requireCurrent(context, cacheFile.lineage);
  if (synced === "quarantined" || ((attributes.mode ?? 0) & SET_ID) !== 0) return false;
  return !isTight(context);
}

/** From the moment when this resolves, bytes may change at any time without a message. */
export async function admitWriter(
  context: Rows & LocalFiles & Uploads & Host,
  cacheFile: OpenCacheFile,
): Promise<void> {
  cacheFile.passthrough.admittingWriter ??= prepare(context, cacheFile).finally(() => {
    cacheFile.passthrough.admittingWriter = undefined;
  });
  await cacheFile.passthrough.admittingWriter;
}

async function prepare(context: Rows & LocalFiles & Uploads & Host, cacheFile: OpenCacheFile): Promise<void> {
  if (cacheFile.passthrough.lastStat !== undefined) return;
  for (;;) {
    expectWrites(context, cacheFile);
    await context.dirtyLog.flush();
    if (cacheFile.changes.isDurable) await noLongerDurable(context, cacheFile);
    const { changes } = requireCurrent(context, cacheFile.lineage);
    const seen = await statFile(context, cacheFile);
    // A snapshot or a sync from before may have ended meanwhile and told the rows that the file stays as it is.
    const isSaid =
      !cacheFile.changes.isDurable &&
      requireCurrent(context, cacheFile.lineage).changes === changes &&
      isExpected(context, cacheFile);
    if (!isSaid) continue;
    remember(cacheFile, seen);
    break;
  }
  context.runtime.step("passthrough: writer let in");
}

/** The rows say already that the file may change. */
function isExpected(context: Rows, cacheFile: OpenCacheFile): boolean {
  return cacheFile.changes.isContentDirty || requireCurrent(context, cacheFile.lineage).content !== "dirty";
}

/** After a crash the rows say that the file may have changed, and the dirty-file log names it. */
function expectWrites(context: Rows & Uploads & Host, cacheFile: OpenCacheFile): void {
  const { metadata } = context;
  const inode = requireCurrent(context, cacheFile.lineage);
  if (inode.content === "dirty") {
    if (!cacheFile.changes.isContentDirty) setContentDirty(context, cacheFile);
    return;
  }
  // The content is "open" since the writer came. After a crash its hash tells whether anything was written.
  logDirty(context, metadata.inodes.update(inode.id, { changes: inode.changes + 1 }), cacheFile);
}
