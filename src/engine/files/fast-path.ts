/**
 * The fast path: when the addon may answer READs and WRITEs of a file that we serve. A lease is granted after a request
 * came the long way, if the next one would do nothing there but read or write the same file.
 *
 * A WRITE on the fast path equals one that comes to us and finds nothing to tell the rows. So JavaScript has to hear of
 * the next WRITE again (revoke-leases.ts) before it tells the rows something that a WRITE has to take back, or
 * remembers `writes` in order to see later whether a WRITE came.
 */

import { withoutPrivileges } from "../../lib/set-id-bits.ts";
import type { HandleId } from "../api/index.ts";
import type { Kernel, Remote, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import type { LocalFiles } from "./room.ts";
import { isTight } from "./space.ts";

/**
 * Length of a write lease. For so long the time of the last change may be wrong, and it is not checked whether writing
 * is still allowed.
 */
const UNHEARD_MS = 100;

/**
 * Called after a read of the handle. Granted when all bytes are here and known to be right, for as long as the handle
 * is open.
 */
export function grantRead(
  { fastPath, handles, fileState }: LocalFiles & Kernel,
  handle: HandleId,
  cacheFile: OpenCacheFile,
): void {
  const { descriptor } = cacheFile.disk.file;
  if (descriptor === undefined || !handles.has(handle) || !isAllHere(cacheFile)) return;
  // Bytes that the check found wrong would be missing again.
  if (cacheFile.ranges.isOriginal && !cacheFile.ranges.isChecked) return;
  if (fileState.pendingTruncates.has(cacheFile.lineage)) return;
  fastPath.grantRead(handle, descriptor);
}

/** Called when a write of the handle is done and still counts as in flight. */
export function grantWrite(
  context: Rows & LocalFiles & Kernel & Remote,
  handle: HandleId,
  cacheFile: OpenCacheFile,
): void {
  const { descriptor } = cacheFile.disk.file;
  if (descriptor === undefined || !context.handles.has(handle) || !isAllHere(cacheFile) || isTight(context)) return;
  // A snapshot or a sync has ended meanwhile, and the next write has to take back what it told the rows.
  if (
    !cacheFile.changes.isContentDirty ||
    cacheFile.changes.isDurable ||
    !cacheFile.changes.hasUnpersistedStat ||
    cacheFile.changes.firstWriteAt === undefined
  )
    return;
  // A write has to clear these bits.
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
