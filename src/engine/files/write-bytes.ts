/**
 * Changes bytes of a cache file. The rows say "dirty" before the first byte changes. Missing ranges that the change
 * overwrites are removed from the rows after the bytes are in the file and before the change is acknowledged. After a
 * crash in between, those ranges are fetched: no program was told that its write succeeded.
 */
import { touchesRange } from "../../lib/ranges.ts";
import { bytesWritten } from "../../lib/system-error.ts";
import { type Caller, FsError, fromDisk, type HandleId } from "../api/index.ts";
import type { Host, Kernel, Remote, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { despiteFullDisk } from "./disk-room.ts";
import { grantWrite } from "./fast-path.ts";
import { beginTruncate } from "./pending-truncate.ts";
import type { LocalFiles } from "./room.ts";
import { noLongerDurable, setContentDirty } from "./set-dirty.ts";
import { isTight, requireRoom } from "./space.ts";

const END = Number.MAX_SAFE_INTEGER;

const KEEP_SIZE = 1;
const PUNCH_HOLE = 2;
const ZERO_RANGE = 16;

/**
 * Resolves to how many bytes were written; fewer than all when the disk became full on the way, as on any disk. Rejects
 * with an FsError: ENOSPC, EDQUOT, EFBIG, or as fromDisk says.
 */
export async function writeBytes(
  context: Rows & LocalFiles & Kernel & Remote & Host,
  handle: HandleId,
  cacheFile: OpenCacheFile,
  offset: number,
  data: Uint8Array,
): Promise<number> {
  const end = offset + data.length;
  if (data.length === 0) return 0;
  if (end > END) throw new FsError("EFBIG", `no file has a byte ${end}`);
  if (isTight(context)) await requireGrowth(context, cacheFile, data.length, end);
  return change(context, cacheFile, offset, end, async () => {
    const written = await writeAsFits(context, cacheFile, offset, data);
    context.runtime.step("write: bytes in the file");
    cacheFile.ranges.overwritten(offset, offset + written);
    // In the same turn, while the write still counts as in flight: a flow that looks for writes later sees this one, or
    // revokes the lease.
    grantWrite(context, handle, cacheFile);
    return written;
  });
}

async function writeAsFits(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  offset: number,
  data: Uint8Array,
): Promise<number> {
  try {
    await despiteFullDisk(context, data.length, () => cacheFile.disk.file.write(data, offset));
    return data.length;
  } catch (error) {
    const written = bytesWritten(error);
    if (written === 0) throw error;
    return written;
  }
}

/** Sets the size, in bytes. New bytes behind the old end are zeros. Rejects as writeBytes does. */
export async function truncateBytes(
  context: Rows & LocalFiles & Remote & Host,
  caller: Caller,
  cacheFile: OpenCacheFile,
  size: number,
): Promise<void> {
  if (size > 0 && isTight(context)) {
    const growth = size - (await cacheFile.disk.file.stat()).size;
    if (growth > 0) await requireGrowth(context, cacheFile, growth, size);
  }
  await change(context, cacheFile, size, END, async () => {
    // Only a file that gets shorter may end early for a reader.
    if (size === 0 || size < (await cacheFile.disk.file.stat()).size) beginTruncate(context, caller, cacheFile);
    await cacheFile.disk.file.truncate(size);
    cacheFile.changes.kernelTruncated();
    context.runtime.step("truncate: file cut short");
    cacheFile.ranges.truncated(size);
  });
}

/**
 * fallocate(2) with the mode bits of the kernel. Missing ranges that get space stay missing. Rejects with EOPNOTSUPP
 * for a mode that is not supported, with EINVAL when `offset` is negative or `length` not positive, or as writeBytes
 * does.
 */
export async function allocateBytes(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  mode: number,
  offset: number,
  length: number,
): Promise<void> {
  const known = [0, KEEP_SIZE, KEEP_SIZE | PUNCH_HOLE, ZERO_RANGE, ZERO_RANGE | KEEP_SIZE];
  if (!known.includes(mode)) throw new FsError("EOPNOTSUPP", `fallocate mode ${mode}`);
  if (length <= 0 || offset < 0) throw new FsError("EINVAL", `fallocate of ${length} bytes at ${offset}`);
  const end = offset + length;
  if (end > END) throw new FsError("EFBIG", `no file has a byte ${end}`);
  if ((mode & PUNCH_HOLE) === 0 && isTight(context)) {
    await requireGrowth(context, cacheFile, length, (mode & KEEP_SIZE) === 0 ? end : 0);
  }
  await change(context, cacheFile, offset, end, async () => {
    await despiteFullDisk(context, length, () => allocateAll(cacheFile, mode, offset, length));
    if ((mode & (PUNCH_HOLE | ZERO_RANGE)) !== 0) cacheFile.ranges.overwritten(offset, end);
  });
}

/**
 * Allocates all of the range or makes the file no longer. A part for which a full disk had room would only take up
 * room, and make the file longer than the rows say.
 */
async function allocateAll(cacheFile: OpenCacheFile, mode: number, offset: number, length: number): Promise<void> {
  const { size } = await cacheFile.disk.file.stat();
  try {
    await cacheFile.disk.file.allocate(mode, offset, length);
  } catch (error) {
    if ((await cacheFile.disk.file.stat()).size > size) await cacheFile.disk.file.truncate(size);
    throw error;
  }
}

/**
 * Asks for room for this many bytes. After the change the file ends at `end`, or where it ends now if that is later.
 * Each name of the file is a file of its own at the gateway.
 */
function requireGrowth(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  bytes: number,
  end: number,
): Promise<void> {
  const names = context.quota.limit === undefined ? 1 : context.metadata.entries.links(cacheFile.inode);
  const exactly = async () => names * Math.max(0, end - (await cacheFile.disk.file.stat()).size);
  return requireRoom(context, bytes, { most: names * bytes, exactly });
}

async function change<T>(
  context: Rows & LocalFiles & Host,
  cacheFile: OpenCacheFile,
  start: number,
  end: number,
  work: () => Promise<T>,
): Promise<T> {
  context.disk.requireChangeable();
  setContentDirty(context, cacheFile);
  cacheFile.changes.begin();
  try {
    await context.dirtyLog.flush();
    if (cacheFile.changes.isDurable) await noLongerDurable(context, cacheFile);
    // A download writes only into missing ranges, and verification reads only unverified ones. Elsewhere no lock is
    // needed.
    const isAlone =
      !touchesRange(cacheFile.ranges.missing, start, end) && !touchesRange(cacheFile.ranges.unverified, start, end);
    const free = isAlone ? undefined : await cacheFile.ranges.lock.hold(start, end);
    try {
      const done = await work();
      cacheFile.ranges.persistTruncation();
      return done;
    } finally {
      free?.();
    }
  } catch (error) {
    throw fromDisk(error, "the local disk refused a change");
  } finally {
    cacheFile.changes.end();
  }
}
