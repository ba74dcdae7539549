/** After a crash: whether a file that a program may have written to is still what its row says. */
import { hasCode } from "../../lib/system-error.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Host } from "../core/index.ts";
import type { LocalFiles } from "./room.ts";

/** Bytes. A bigger file counts as changed until its snapshot is taken, which hashes it while others are served. */
const HASHED_AT_START = 16 * 1024 * 1024;

/**
 * True: the file has this content, as far as that is found out quickly. A file that the disk cannot read (EIO) counts
 * as changed too: its snapshot will tell what is wrong, and all other files can be served.
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
