/** After a crash: whether a file that somebody may have written to is what its row says. */
import type { Inode } from "../metadata/inodes.ts";
import type { Context } from "./context.ts";

/** A bigger one counts as changed until it is cut, which hashes it while others are served. */
const HASHED_AT_START = 16 * 1024 * 1024;

/** Whether the file has this content, as far as that is found out quickly. */
export async function isStill({ runtime, paths }: Context, inode: Inode, hash: string): Promise<boolean> {
  const path = paths.live(inode.lineage);
  const { size } = await runtime.files.stat(path);
  return size === inode.size && size <= HASHED_AT_START && (await runtime.files.hash(path)).hash === hash;
}
