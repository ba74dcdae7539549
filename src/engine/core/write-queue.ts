/** Marks rows, so that the write-back loop finds them. The interface; enqueue.ts implements it. */
import type { RowTime, SteadyTime } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";

/** The queue of write-back is the table of node rows. All calls must run in the transaction of the change. */
export interface WriteQueue {
  /** When a change made now should be sent, by the clock of `now`: row time or Runtime.elapsed(). */
  dueTime<Time extends SteadyTime>(now: Time, dirtySince: Time | null): Time;
  /**
   * The local state of the row changed. `since`: dirtySince of the row that had the content before. `change`: a change
   * of the row itself, made in the same write.
   */
  setNodeDirty(node: NodeRow, since?: RowTime | null, change?: Partial<Omit<NodeRow, "id">>): NodeRow;
  /** The inode's content or attributes changed: the node rows of all its names are dirty. */
  setInodeDirty(inode: InodeId, since?: RowTime | null): void;
  /** The plan looks at the row at once. This does not count as a change. */
  enqueue(node: NodeRow | undefined): void;
  /** The plan looks at the rows of all names of the inode at once. This does not count as a change. */
  enqueueInode(inode: InodeId): void;
  /** The last writer closed the inode, unchanged since the last snapshot: it may be sent after the debounce. */
  enqueueAfterQuiet(inode: InodeId): void;
}
