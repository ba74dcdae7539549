/**
 * Inodes whose rows said that their dirty content is durable, and do not say so any more because it is not dirty. Until
 * the rows are synced, the rows on the disk still say so. For example: a durable content becomes clean, a program
 * changes a byte, and the power fails: the rows on the disk take the changed byte for a durable one. The inodes are
 * kept in memory only, because a mount begins with synced rows.
 */
import type { InodeId } from "./ids.ts";

/** The largest number of inodes that are kept. If there are more, every inode counts as one of them. */
const MOST = 10_000;

export interface FormerlyDurable {
  add(inode: InodeId): void;
  has(inode: InodeId): boolean;
  /** Must be called before the rows are synced. The returned function must be called after the sync. */
  beforeSync(): () => void;
}

export function createFormerlyDurable(): FormerlyDurable {
  const inodes = new Set<InodeId>();
  /** The inodes that were added since the last sync began, which may not cover them. */
  const added = new Set<InodeId>();
  /** Counts the inodes that had no room. */
  let others = 0;
  return {
    add(inode) {
      if (inodes.size < MOST) {
        inodes.add(inode);
        added.add(inode);
      } else others += 1;
    },
    has: (inode) => others > 0 || inodes.has(inode),
    beforeSync() {
      const known = [...inodes];
      const before = others;
      added.clear();
      return () => {
        for (const inode of known) if (!added.has(inode)) inodes.delete(inode);
        if (others === before) others = 0;
      };
    },
  };
}
