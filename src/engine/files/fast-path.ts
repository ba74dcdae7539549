/**
 * When READs and WRITEs of a file that we serve pass us by: once one of them has come the long way, and the next one would
 * do nothing there but read or write the same file.
 *
 * A WRITE that passes us by does what one that comes to us does from its first line to its last in one turn, in which it
 * finds that there is nothing to say to the rows. So whoever says something to the rows that a WRITE has to take
 * back, or remembers `writes` to see later whether one came, has to hear of the next one (hear-writes.ts).
 */

import type { HandleId } from "../api/index.ts";
import type { CacheFile, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import { withoutPrivileges } from "./set-id-bits.ts";
import { isTight } from "./space.ts";

/** For so long the time of the last change may be wrong, and nobody looks whether something may be written at all. */
const UNHEARD_MS = 100;

/** After a read of the handle: all there is, and it is what it should be, for as long as the handle is open. */
export function grantRead(
  { fastPath, handles, fileState }: LocalFiles & Kernel,
  handle: HandleId,
  cacheFile: CacheFile,
): void {
  const { descriptor } = cacheFile.disk.file;
  if (descriptor === undefined || !handles.has(handle) || !isAllHere(cacheFile)) return;
  // What was found wrong would be missing again.
  if (cacheFile.ranges.isOriginal && !cacheFile.ranges.isChecked) return;
  if (fileState.pendingTruncates.has(cacheFile.lineage)) return;
  fastPath.grantRead(handle, descriptor);
}

/** When a write of the handle is done and still counts as under way. */
export function grantWrite(context: Rows & LocalFiles & Kernel & Remote, handle: HandleId, cacheFile: CacheFile): void {
  const { descriptor } = cacheFile.disk.file;
  if (descriptor === undefined || !context.handles.has(handle) || !isAllHere(cacheFile) || isTight(context)) return;
  // A cut, or a sync, has ended meanwhile: the next write says again what it took back.
  if (
    !cacheFile.changes.isContentDirty ||
    cacheFile.changes.isDurable ||
    !cacheFile.changes.hasUnpersistedStat ||
    cacheFile.changes.firstWriteAt === undefined
  )
    return;
  // A write takes them away.
  if (withoutPrivileges(context.metadata.inodes.get(cacheFile.inode)?.attributes.mode) !== undefined) return;
  context.fastPath.grantWrite(handle, descriptor, UNHEARD_MS);
}

function isAllHere(cacheFile: CacheFile): boolean {
  return (
    cacheFile.disk.isKept &&
    [cacheFile.ranges.missing, cacheFile.ranges.persistedMissing, cacheFile.ranges.unverified].every(
      ({ length }) => length === 0,
    )
  );
}
