/**
 * Programs of a mount that is gone. A file that the kernel wrote for them (pass-on.ts) they may still have
 * open, and go on writing to, without anybody hearing of it: such a file is left to them, and a copy
 * as it is now takes its place.
 */
import { hasCode } from "../../lib/system-error.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Host, LocalFiles } from "../core/index.ts";

/** At the start, of each file that had a writer when the mount before ended. Its bytes and time stay as they are. */
export async function leaveToDetachedWriters(context: LocalFiles & Host, lineage: KernelNodeId): Promise<void> {
  const { runtime, paths, log } = context;
  const { files } = runtime;
  const path = paths.cacheFile(lineage);
  const copy = `${path}.copy`;
  try {
    const { mtime } = await files.stat(path);
    await files.remove(copy);
    if (await hasNoWriter(context, lineage)) return;
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
      { err: error, lineage },
      "a file that programs of the mount before may still write to could not be copied",
    );
    await files.remove(copy).catch(() => {});
  }
}

/** Also where there is no such file. */
export async function hasNoWriter({ runtime, paths }: LocalFiles & Host, lineage: KernelNodeId): Promise<boolean> {
  try {
    const file = await runtime.files.open(paths.cacheFile(lineage), "r+");
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

/** Inodes of files the kernel writes to by itself right now. */
export function withPassthroughWriters({ cacheFiles }: Pick<LocalFiles, "cacheFiles">): InodeId[] {
  const passed = [...cacheFiles.values()].filter(
    (cacheFile) => cacheFile.passthrough.passthroughWriters > 0 || cacheFile.passthrough.isMapped,
  );
  return passed.map((live) => live.inode);
}
