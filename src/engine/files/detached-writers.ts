/**
 * Writers of an ended mount. Programs may still have a passthrough file of it open, and their writes are not reported.
 * Such a file is left to them, and a copy of its present state takes its place.
 */
import { hasCode } from "../../lib/system-error.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Host } from "../core/index.ts";
import type { LocalFiles } from "./room.ts";

/**
 * Called at the start for each file that had a writer when the last mount ended. The copy has the same bytes and mtime.
 * Never rejects for a file that cannot be copied: that is logged, and the file stays in its place.
 */
export async function leaveToDetachedWriters(context: LocalFiles & Host, kernelNodeId: KernelNodeId): Promise<void> {
  const { runtime, paths, log } = context;
  const { files } = runtime;
  const path = paths.cacheFile(kernelNodeId);
  const copy = `${path}.copy`;
  try {
    const { mtime } = await files.stat(path);
    await files.remove(copy);
    if (await hasNoWriter(context, kernelNodeId)) return;
    await files.clone(path, copy);
    const file = await files.open(copy, "r+");
    try {
      await file.setTimes(mtime);
      await file.sync();
    } finally {
      await file.close();
    }
    await files.rename(copy, path);
    await paths.syncFolderOf(path);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    log.warn(
      { err: error, lineage: kernelNodeId },
      "a file that programs of the mount before may still write to could not be copied",
    );
    await files.remove(copy).catch(() => {});
  }
}

/** True: no program has the file open for writing or mapped, or there is no such file. */
export async function hasNoWriter({ runtime, paths }: LocalFiles & Host, kernelNodeId: KernelNodeId): Promise<boolean> {
  try {
    const file = await runtime.files.open(paths.cacheFile(kernelNodeId), "r+");
    try {
      return (await file.isOnlyWriter?.()) ?? true;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (hasCode(error, "ENOENT")) return true;
    throw error;
  }
}

/** Inodes that have a passthrough writer, or one whose mapping has not ended. */
export function withPassthroughWriters({ cacheFiles }: Pick<LocalFiles, "cacheFiles">): InodeId[] {
  const written = [...cacheFiles.values()].filter(
    (cacheFile) => cacheFile.passthrough.writers > 0 || cacheFile.passthrough.isMapped,
  );
  return written.map(({ inode }) => inode);
}
