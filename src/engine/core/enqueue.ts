/**
 * Sets rows dirty when a program changed them, so that the write-back loop finds them. It must run in the transaction
 * of the change: no crash may leave a change without its mark.
 */
import { earlierOf, minus, plus, type RowTime, type SteadyTime } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, Rows, Uploads } from "./context.ts";
import type { WriteQueue } from "./write-queue.ts";

type Needs = Pick<Rows & Uploads & Host, "metadata" | "runtime" | "settings" | "activity">;

export function createWriteQueue(context: Needs): WriteQueue {
  return {
    dueTime: (now, dirtySince) => dueTime(context.settings, now, dirtySince),
    setNodeDirty: (node, since, change) => setNodeDirty(context, node, since, change),
    setInodeDirty: (inode, since) => setInodeDirty(context, inode, since),
    enqueue: (node) => enqueue(context, node),
    enqueueInode: (inode) => enqueueInode(context, inode),
    enqueueAfterQuiet: (inode) => enqueueAfterQuiet(context, inode),
  };
}

/** In a burst of changes, a mark that would move the due time by less than this is not written. */
const MARK_MS = 100;

/** The time at which a change made now should be sent: after the debounce, but not later than the maximum age. */
function dueTime<Time extends SteadyTime>(settings: Host["settings"], now: Time, dirtySince: Time | null): Time {
  return earlierOf(plus(now, settings.debounceMs), plus(dirtySince ?? now, settings.maximumAgeMs));
}

/**
 * The local state of the node row changed. `since`: dirtySince of the row that had the content before, so that a drain
 * that waits for this content goes on waiting. `change`: a change of the row itself, made in the same write.
 */
function setNodeDirty(
  context: Needs,
  node: NodeRow,
  since: RowTime | null = null,
  change?: Partial<Omit<NodeRow, "id">>,
): NodeRow {
  const { nodes } = context.metadata;
  const now = context.runtime.now();
  const dirtySince = earlierOf(node.dirtySince ?? now, since ?? now);
  const due = dueTime(context.settings, now, dirtySince);
  if (node.dirtySince === dirtySince && node.parked === null && isMarked(context, node, due)) {
    return change === undefined ? node : nodes.update(node.id, change);
  }
  context.activity.wake(due);
  // The file or folder was changed again, and the gateway may now accept the change that it refused before.
  return nodes.update(node.id, { ...change, changedAt: now, dirtySince, due, parked: null });
}

function isMarked({ settings }: Needs, node: NodeRow, due: RowTime): boolean {
  if (node.due === null) return false;
  const later = minus(due, node.due);
  return later >= 0 && later < Math.min(MARK_MS, settings.debounceMs / 10);
}

/** The inode's content or attributes changed: the node rows of all its names are dirty. `since`: see setNodeDirty. */
function setInodeDirty(context: Needs, inode: InodeId, since: RowTime | null = null): void {
  for (const entry of context.metadata.entries.ofInode(inode)) {
    const node = context.metadata.nodes.ofEntry(entry.id);
    if (node !== undefined) setNodeDirty(context, node, since);
  }
}

/** The last writer closed the inode, unchanged since the last snapshot: it may be sent after the debounce. */
function enqueueAfterQuiet(context: Needs, inode: InodeId): void {
  const now = context.runtime.now();
  for (const entry of context.metadata.entries.ofInode(inode)) {
    const node = context.metadata.nodes.ofEntry(entry.id);
    if (node === undefined) continue;
    const due = dueTime(context.settings, now, node.dirtySince);
    if (isMarked(context, node, due)) continue;
    context.metadata.nodes.update(node.id, { due });
    context.activity.wake(due);
  }
}

/** The plan looks at the row at once. This does not count as a change. */
function enqueue(context: Needs, node: NodeRow | undefined): void {
  if (node === undefined) return;
  context.metadata.nodes.update(node.id, { due: context.runtime.now() });
  context.activity.wake();
}

/** The plan looks at the rows of all names of the inode at once. This does not count as a change. */
function enqueueInode(context: Needs, inode: InodeId): void {
  for (const entry of context.metadata.entries.ofInode(inode)) {
    enqueue(context, context.metadata.nodes.ofEntry(entry.id));
  }
}
