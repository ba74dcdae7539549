/** After a crash: whether a file that somebody may have written to is what its row says. */
import { hasCode } from "../../lib/system-error.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Host, LocalFiles } from "../core/index.ts";

/** A bigger one counts as changed until it is cut, which hashes it while others are served. */
const HASHED_AT_START = 16 * 1024 * 1024;

/**
 * Whether the file has this content, as far as that is found out quickly. What the disk cannot read counts as
 * changed too: whoever cuts it says what is wrong, and all others can be served.
 */
export async function isStill(
  { runtime, paths, log }: LocalFiles & Host,
  inode: Inode,
  hash: string,
): Promise<boolean> {
  const path = paths.cacheFile(inode.lineage);
  const { size } = await runtime.files.stat(path);
  if (size !== inode.size || size > HASHED_AT_START) return false;
  try {
    return (await runtime.files.hash(path)).hash === hash;
  } catch (error) {
    if (!hasCode(error, "EIO")) throw error;
    log.error({ err: error, inode: inode.id, lineage: inode.lineage }, "a file that was open cannot be read");
    return false;
  }
}
