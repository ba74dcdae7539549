/**
 * A takeover: cache files that the earlier daemon had open are opened again. Passthrough files keep their backing id in
 * the kernel. A file that writers may have changed since the last look counts as written, unless its hash shows that it
 * did not change.
 */
import { formatTime } from "../../lib/time.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { BackingId } from "../api/index.ts";
import type { Host, Rows } from "../core/index.ts";
import { isContentDirty, reopenFile, requireCurrent } from "./backing-file.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { alone } from "./file-state.ts";
import { isStill } from "./is-unchanged.ts";
import { admitWriter } from "./passthrough.ts";
import type { LocalFiles } from "./room.ts";
import { setContentDirty } from "./set-dirty.ts";
import { mtimeOf } from "./times.ts";

/**
 * Opens the file again for `handles`, which the kernel still has. Rejects with ESTALE, EIO or the disk's error when the
 * file cannot be opened as it was.
 */
export async function resumeFile(
  context: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
  handles: readonly { write: boolean; backing: BackingId | undefined }[],
): Promise<OpenCacheFile> {
  const writers = handles.filter(({ write }) => write).length;
  const cacheFile = await reopen(context, kernelNodeId, handles.length, writers);
  const backingId = handles.find(({ backing }) => backing !== undefined)?.backing;
  cacheFile.passthrough.resumed(handles.length, backingId, writers);
  try {
    // The file of a superseded kernel node id can no longer be written to. Its handles go on reading the old bytes.
    const isCurrent = context.metadata.inodes.ofKernelNodeId(kernelNodeId)?.kernelNodeId === kernelNodeId;
    if (writers > 0 && isCurrent) await resumeWriting(context, cacheFile, backingId !== undefined);
  } catch (error) {
    // Otherwise the file would never be closed. The rows still say that it has a writer, so the next start looks at it.
    await closeUntaken(context, cacheFile);
    throw error;
  }
  return cacheFile;
}

/**
 * Opens a file again that a passthrough writer has closed and still has mapped. The mapping counts as an open. Rejects
 * as resumeFile does.
 */
export async function resumeMapped(
  context: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
): Promise<OpenCacheFile> {
  const read = context.cacheFiles.get(kernelNodeId);
  const cacheFile = read ?? (await reopen(context, kernelNodeId, 1, 1));
  read?.use.open();
  read?.use.admitWriter();
  try {
    await resumeWriting(context, cacheFile, true);
  } catch (error) {
    // As in resumeFile.
    cacheFile.use.close();
    cacheFile.use.writerLeft();
    if (read === undefined) await closeUntaken(context, cacheFile);
    throw error;
  }
  return cacheFile;
}

async function closeUntaken(context: LocalFiles, cacheFile: OpenCacheFile): Promise<void> {
  context.cacheFiles.delete(cacheFile.kernelNodeId);
  await cacheFile.disk.close().catch(() => {});
}

function reopen(
  context: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
  opens: number,
  writers: number,
): Promise<OpenCacheFile> {
  return alone(context, kernelNodeId, async () => {
    const cacheFile = await reopenFile(context, kernelNodeId, writers > 0);
    cacheFile.use.resumed(opens, writers);
    cacheFile.changes.shownUnknown();
    context.cacheFiles.set(kernelNodeId, cacheFile);
    return cacheFile;
  });
}

async function resumeWriting(
  context: Rows & LocalFiles & Host,
  cacheFile: OpenCacheFile,
  isPassthrough: boolean,
): Promise<void> {
  const { metadata, runtime } = context;
  metadata.transaction(() => {
    const inode = requireCurrent(context, cacheFile.kernelNodeId);
    metadata.writers.begin(inode.id);
    if (inode.content === "clean") metadata.inodes.update(inode.id, { content: "open" });
  });
  const inode = requireCurrent(context, cacheFile.kernelNodeId);
  cacheFile.changes.resumed(isContentDirty(inode), runtime.elapsed());
  if (isContentDirty(inode)) cacheFile.ranges.noLongerOriginal();
  cacheFile.use.keepTimes();
  // The file got this mtime when its first writer was admitted. Since then its own mtime counts.
  cacheFile.use.prepared(formatTime(mtimeOf(context, inode)));
  if (isPassthrough) {
    // admitWriter takes a stat before the comparison, so that write detection finds changes during the comparison.
    await admitWriter(context, cacheFile);
    const now = requireCurrent(context, cacheFile.kernelNodeId);
    if (now.content === "open" && (now.hash === null || !(await isStill(context, now, now.hash)))) {
      setContentDirty(context, cacheFile);
      await context.dirtyLog.flush();
    }
  }
}
