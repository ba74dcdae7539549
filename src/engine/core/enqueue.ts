/**
 * Marks what a program changed, so that the write-back loop finds it. Must run inside the
 * transaction of the change itself: a change and its mark are never apart.
 */
import type { InodeId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, Rows, Uploads } from "./context.ts";

type Needs = Pick<Rows & Uploads & Host, "metadata" | "runtime" | "settings" | "activity">;

/** A burst of changes is one: a mark that would only move the time by less than this is not written again. */
const MARK_MS = 100;

/** When a change made now should be sent: after some quiet, but not later than the maximum age. */
export function dueTime(settings: Host["settings"], now: number, dirtySince: number | null): number {
  return Math.min(now + settings.debounceMs, (dirtySince ?? now) + settings.maximumAgeMs);
}

/**
 * The node row's local state changed. `since`: of the row that had its content so far; who waits for that content goes on
 * waiting. `change`: of the row itself, in the same write.
 */
export function setNodeDirty(
  context: Needs,
  node: NodeRow,
  since: number | null = null,
  change?: Partial<Omit<NodeRow, "id">>,
): NodeRow {
  const { nodes } = context.metadata;
  const now = context.runtime.now();
  const dirtySince = Math.min(node.dirtySince ?? now, since ?? now);
  const due = dueTime(context.settings, now, dirtySince);
  if (node.dirtySince === dirtySince && node.parked === null && isMarked(context, node, due)) {
    return change === undefined ? node : nodes.update(node.id, change);
  }
  context.activity.wake(due);
  // A person or program touched it again: what the gateway refused may be accepted now.
  return nodes.update(node.id, { ...change, changedAt: now, dirtySince, due, parked: null });
}

function isMarked({ settings }: Needs, node: NodeRow, due: number): boolean {
  const later = node.due === null ? Number.POSITIVE_INFINITY : due - node.due;
  return later >= 0 && later < Math.min(MARK_MS, settings.debounceMs / 10);
}

/** The inode's content or attributes changed: every name of it has something to send. `since`: as of `markNode`. */
export function setInodeDirty(context: Needs, inode: InodeId, since: number | null = null): void {
  for (const entry of context.metadata.entries.ofInode(inode)) {
    const node = context.metadata.nodes.ofEntry(entry.id);
    if (node !== undefined) setNodeDirty(context, node, since);
  }
}

/** The inode's last writer closed it: it may be sent once nobody has touched it for a while. */
export function enqueueAfterQuiet(context: Needs, inode: InodeId): void {
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

/** The plan should look at the row at once, without it counting as a change. */
export function enqueue(context: Needs, node: NodeRow | undefined): void {
  if (node === undefined) return;
  context.metadata.nodes.update(node.id, { due: context.runtime.now() });
  context.activity.wake();
}

/** The same for every name of an inode, at once. */
export function enqueueInode(context: Needs, inode: InodeId): void {
  for (const entry of context.metadata.entries.ofInode(inode)) {
    enqueue(context, context.metadata.nodes.ofEntry(entry.id));
  }
}
