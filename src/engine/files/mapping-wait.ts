/**
 * Mapping wait: the end of a passthrough writer. If the writer mapped the file, the mapping outlives its descriptors,
 * and the kernel does not tell when it ends. Until then the mapping counts as a writer, and the kernel is asked now and
 * then. Some kernels (with IMA) count readers as well. There the file counts as open for writing until its readers are
 * gone too, and its snapshots are those of an open file.
 */
import { sleep } from "../../lib/runtime.ts";
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { closeCacheFile } from "./open-close.ts";
import type { LocalFiles } from "./room.ts";

/** Milliseconds until the second question: a file that was just closed may count as open for a moment longer. */
const FIRST_MS = 5;
const LONGEST_MS = 1000;

/** Replaces closeCacheFile for a passthrough writer: closes when its last descriptor and mapping are gone. */
export async function closePassthrough(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
): Promise<void> {
  if (cacheFile.passthrough.writers > 0 || cacheFile.passthrough.isMapped || (await isAlone(context, cacheFile))) {
    return closeCacheFile(context, cacheFile, { write: true });
  }
  // During the wait another writer may have come and gone the same way.
  if (cacheFile.passthrough.isMapped) return closeCacheFile(context, cacheFile, { write: true });
  cacheFile.passthrough.setMapped(true);
  context.background("waiting for the end of a mapping", async () => {
    const signal = context.fileState.stopped;
    for (let wait = FIRST_MS; !signal.aborted && !(await isAlone(context, cacheFile)); ) {
      await sleep(context.runtime, wait, signal);
      wait = Math.min(LONGEST_MS, 4 * wait);
    }
    cacheFile.passthrough.setMapped(false);
    await closeCacheFile(context, cacheFile, { write: true });
  });
}

async function isAlone({ log }: Host, cacheFile: OpenCacheFile): Promise<boolean> {
  try {
    return (await cacheFile.disk.file.isOnlyWriter?.()) ?? true;
  } catch (error) {
    log.error({ err: error, lineage: cacheFile.kernelNodeId }, "whether a file is still mapped cannot be found out");
    return true;
  }
}
