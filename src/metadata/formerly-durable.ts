/**
 * Inodes whose rows said that their dirty content is durable, and no longer do because it is clean by now. Until the
 * rows are synced, the rows on the disk still say so: after power loss, a byte that changed meanwhile would be taken
 * for a durable one. Kept in memory, because a mount begins with synced rows.
 */
import type { InodeId } from "./ids.ts";

/** More inodes than this are not told apart. */
const MOST = 10_000;

export interface FormerlyDurable {
  add(inode: InodeId): void;
  has(inode: InodeId): boolean;
  /** Must be called before the rows are synced. The returned function must be called after the sync. */
  beforeSync(): () => void;
}

export function createFormerlyDurable(): FormerlyDurable {
  const inodes = new Set<InodeId>();
  /** Added since the last sync began, which may be too early for them. */
  const added = new Set<InodeId>();
  /** The number of times that an inode did not fit in any more. */
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
