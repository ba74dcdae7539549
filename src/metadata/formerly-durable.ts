/**
 * Inodes whose rows said that their dirty content is safe from power loss, and no longer do, because
 * it is clean by now. Until the rows are synced, those on the disk say it still: a byte that changes
 * meanwhile would be taken for a safe one. Kept in memory: a mount begins with synced rows.
 */
import type { InodeId } from "./ids.ts";

/** More than this are not told apart. */
const MOST = 10_000;

export interface FormerlyDurable {
  add(inode: InodeId): void;
  has(inode: InodeId): boolean;
  /** To be called before the rows are synced; and what it returns, when they are. */
  beforeSync(): () => void;
}

export function createFormerlyDurable(): FormerlyDurable {
  const inodes = new Set<InodeId>();
  /** Since the last sync began, which may be too early for them. */
  const added = new Set<InodeId>();
  /** How often one did not fit in any more. */
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
