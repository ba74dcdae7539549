/**
 * The fast path: decides when the addon may answer READs and WRITEs of a file that we serve. A lease is granted after a
 * request came to JavaScript, if the next one would do nothing there but read or write the same file.
 *
 * A WRITE on the fast path changes no row. So JavaScript must revoke the write leases (revoke-leases.ts) in two cases:
 * before it stores something in the rows that a WRITE has to take back, and before it remembers `writes` in order to
 * see later whether a WRITE came.
 */

import { withoutPrivileges } from "../../lib/set-id-bits.ts";
import type { HandleId } from "../api/index.ts";
import type { Kernel, Remote, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import type { LocalFiles } from "./room.ts";
import { isTight } from "./space.ts";

/**
 * Length of a write lease in milliseconds. For this time `lastWriteAt` may be too old, and writes are not refused when
 * they are not allowed any more.
 */
const UNHEARD_MS = 100;

/**
 * Grants a read lease after a read of the handle, if all bytes are here and known to be right. The lease lasts until
 * the handle ends or the lease is revoked.
 */
export function grantRead(
  { fastPath, handles, fileState }: LocalFiles & Kernel,
  handle: HandleId,
  cacheFile: OpenCacheFile,
): void {
  const { descriptor } = cacheFile.disk.file;
  if (descriptor === undefined || !handles.has(handle) || !isAllHere(cacheFile)) return;
  // The check may find the bytes wrong. Then they are missing again, and must not be read.
  if (cacheFile.ranges.isOriginal && !cacheFile.ranges.isChecked) return;
  if (fileState.pendingTruncates.has(cacheFile.kernelNodeId)) return;
  fastPath.grantRead(handle, descriptor);
}

/** Grants a write lease. Called when a write of the handle is done and still counts as in flight. */
export function grantWrite(
  context: Rows & LocalFiles & Kernel & Remote,
  handle: HandleId,
  cacheFile: OpenCacheFile,
): void {
  const { descriptor } = cacheFile.disk.file;
  if (descriptor === undefined || !context.handles.has(handle) || !isAllHere(cacheFile) || isTight(context)) return;
  // A snapshot or a sync has ended meanwhile: the next write has to take back the state that it stored in the rows.
  if (
    !cacheFile.changes.isContentDirty ||
    cacheFile.changes.isDurable ||
    !cacheFile.changes.hasUnpersistedStat ||
    cacheFile.changes.firstWriteAt === undefined
  )
    return;
  // The next write has to clear set-id bits.
  if (withoutPrivileges(context.metadata.inodes.get(cacheFile.inode)?.attributes.mode) !== undefined) return;
  context.fastPath.grantWrite(handle, descriptor, UNHEARD_MS);
}

function isAllHere(cacheFile: OpenCacheFile): boolean {
  return (
    cacheFile.disk.isKept &&
    [cacheFile.ranges.missing, cacheFile.ranges.persistedMissing, cacheFile.ranges.unverified].every(
      ({ length }) => length === 0,
    )
  );
}
