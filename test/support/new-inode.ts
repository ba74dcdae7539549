/** An empty clean inode, as a row that is to be made. */
import type { NewInode } from "../../src/metadata/inodes.ts";

export const NEW_INODE = {
  attributes: {},
  size: 0,
  hash: null,
  originNode: null,
  originVersion: null,
  content: "clean",
  atime: "0.000000000",
  ctime: "0.000000000",
} as const satisfies Omit<NewInode, "kind">;
