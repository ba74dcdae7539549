/**
 * The state dir was removed while the mount runs. The descriptors of open files still have their bytes, and those of
 * the database still have the rows. So changes in open files are sent from there, and these files stay open until the
 * mount ends. All other unsent bytes are lost with the folder.
 */
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import { closeCacheFile, persistStat } from "./open-close.ts";
import type { LocalFiles } from "./room.ts";

/** Keeps changed files open, and records their newest sizes in the rows. */
export function keepOpenForUpload(context: Rows & LocalFiles & Kernel & Host): void {
  const { cacheFiles, fileState, metadata, log } = context;
  const changed = [...cacheFiles.values()].filter(
    (cacheFile) => metadata.inodes.get(cacheFile.inode)?.content !== "clean",
  );
  for (const cacheFile of changed) {
    cacheFile.use.open();
    fileState.keptOpen.add(cacheFile);
    persistStat(context, cacheFile).catch((error: unknown) => log.warn({ err: error }, "a size could not be recorded"));
  }
  if (changed.length > 0)
    log.warn({ files: changed.length }, "open files with changes are sent before they are closed");
}

/** Closes the files that were kept open. For the end of the mount. */
export async function closeKept(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host): Promise<void> {
  for (const cacheFile of context.fileState.keptOpen) await closeCacheFile(context, cacheFile, { write: false });
}
