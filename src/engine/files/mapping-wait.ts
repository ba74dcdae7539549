/**
 * The end of a writer that was passed on (pass-on.ts). Where it mapped the file, the mapping outlives its
 * descriptors, and the kernel tells nobody of its end: for that long it counts as a writer, and the
 * kernel is asked now and then. Some kernels (IMA) count those who read it too: the file is then cut as
 * one that stays open is, until they are gone.
 */
import { sleep } from "../../lib/runtime.ts";
import {
  type CacheFile,
  type Host,
  inBackground,
  type LocalFiles,
  type Remote,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import { closeCacheFile } from "./open-close.ts";

/** A file that was just closed may count as open for a moment longer. */
const FIRST_MS = 5;
const LONGEST_MS = 1000;

/** Instead of closeCacheFile: when its last descriptor is gone, or later. */
export async function closePassthrough(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
): Promise<void> {
  if (
    cacheFile.passthrough.passthroughWriters > 0 ||
    cacheFile.passthrough.isMapped ||
    (await isAlone(context, cacheFile))
  ) {
    return closeCacheFile(context, cacheFile, { write: true });
  }
  // Another one may have come, and gone the same way, meanwhile.
  if (cacheFile.passthrough.isMapped) return closeCacheFile(context, cacheFile, { write: true });
  cacheFile.passthrough.isMapped = true;
  inBackground(context, "waiting for the end of a mapping", async () => {
    const { signal } = context.fileState.stopped;
    for (let wait = FIRST_MS; !signal.aborted && !(await isAlone(context, cacheFile)); ) {
      await sleep(context.runtime, wait, signal);
      wait = Math.min(LONGEST_MS, 4 * wait);
    }
    cacheFile.passthrough.isMapped = false;
    await closeCacheFile(context, cacheFile, { write: true });
  });
}

async function isAlone({ log }: Host, cacheFile: CacheFile): Promise<boolean> {
  try {
    return (await cacheFile.disk.file.isOnlyWriter?.()) ?? true;
  } catch (error) {
    log.error({ err: error, lineage: cacheFile.lineage }, "who has a file mapped cannot be found out");
    return true;
  }
}
