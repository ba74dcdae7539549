/** After a crash: finds out whether a file that a program may have written to still has the content of its row. */
import { hasCode } from "../../lib/system-error.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Host } from "../core/index.ts";
import type { LocalFiles } from "./room.ts";

/** Bytes. A larger file counts as changed. Its snapshot hashes it later, while other files are served. */
const HASHED_AT_START = 16 * 1024 * 1024;

/**
 * True: the SHA-256 of the file is `hash`. A large file counts as changed, and so does a file that the disk cannot read
 * (EIO): its snapshot will report the error, and all other files can be served. Rejects with other errors of the disk.
 */
export async function isStill(
  { runtime, paths, log }: LocalFiles & Host,
  inode: Inode,
  hash: string,
): Promise<boolean> {
  const path = paths.cacheFile(inode.kernelNodeId);
  const { size } = await runtime.files.stat(path);
  if (size !== inode.size || size > HASHED_AT_START) return false;
  try {
    return (await runtime.files.hash(path)).hash === hash;
  } catch (error) {
    if (!hasCode(error, "EIO")) throw error;
    log.error({ err: error, inode: inode.id, lineage: inode.kernelNodeId }, "a file that was open cannot be read");
    return false;
  }
}
