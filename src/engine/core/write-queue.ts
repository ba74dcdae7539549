/** Marks a change, so that the write-back loop finds its row; see enqueue.ts. */
import type { RowTime, SteadyTime } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";

/** The queue of write-back is the table of node rows: this marks rows for the loop. */
export interface WriteQueue {
  /** When a change made now should be sent: by row time, or by Runtime.elapsed(). */
  dueTime<Time extends SteadyTime>(now: Time, dirtySince: Time | null): Time;
  /** The local state of the row changed. `since`: dirtySince of the row that had the content so far. `change`: of the row. */
  setNodeDirty(node: NodeRow, since?: RowTime | null, change?: Partial<Omit<NodeRow, "id">>): NodeRow;
  /** The inode's content or attributes changed, so every name of it has something to send. */
  setInodeDirty(inode: InodeId, since?: RowTime | null): void;
  /** The plan looks at the row at once. */
  enqueue(node: NodeRow | undefined): void;
  /** The same for every name of an inode. */
  enqueueInode(inode: InodeId): void;
  /** The last writer of the inode closed it: it may be sent after the debounce. */
  enqueueAfterQuiet(inode: InodeId): void;
}
