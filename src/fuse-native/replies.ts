/**
 * Answers of the file system as numbers that the library takes. Values that do not fit are cut here;
 * docs/user/fuse-native.md lists them.
 */

import type { FolderEntry, SpaceInfo, Stat } from "../engine/api/index.ts";
import { KIND_BITS } from "../fuse/attributes.ts";
import type { Time } from "../lib/time.ts";
import type { NativeSpace, NativeStat } from "./library.ts";

const BLOCK_SIZE = 4096;
const MAX_32 = 2 ** 32;

/** Times before 1970 become 0, and fractions of a millisecond are lost. */
function milliseconds({ seconds, nanoseconds }: Time): number {
  return Math.max(0, seconds * 1000 + Math.floor(nanoseconds / 1e6));
}

export function nativeStat(stat: Stat): NativeStat {
  return {
    mode: KIND_BITS[stat.kind] | (stat.mode & 0o7777),
    uid: stat.uid,
    gid: stat.gid,
    size: stat.size,
    nlink: stat.links,
    ino: stat.inode % MAX_32,
    rdev: stat.rdev,
    blksize: BLOCK_SIZE,
    blocks: stat.blocks,
    atime: milliseconds(stat.atime),
    mtime: milliseconds(stat.mtime),
    ctime: milliseconds(stat.ctime),
  };
}

/** Of a list's entries, the library uses only the inode number and the kind. */
export function nativeEntry({ inode, kind }: FolderEntry): NativeStat {
  return {
    mode: KIND_BITS[kind],
    ino: inode % MAX_32,
    ...{ uid: 0, gid: 0, size: 0, nlink: 1, rdev: 0, blksize: 0, blocks: 0, atime: 0, mtime: 0, ctime: 0 },
  };
}

/** Counts in blocks so large that the number of blocks fits into 32 bits. */
export function nativeSpace(space: SpaceInfo): NativeSpace {
  let scale = 1;
  while (space.blocks / scale >= MAX_32) scale *= 2;
  const blocks = (count: number) => Math.floor(count / scale);
  return {
    bsize: space.blockSize * scale,
    frsize: space.blockSize * scale,
    blocks: blocks(space.blocks),
    bfree: blocks(space.free),
    bavail: blocks(space.available),
    files: space.files,
    ffree: space.filesFree,
    favail: space.filesFree,
    namemax: space.nameLength,
  };
}
