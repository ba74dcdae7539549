/** A request becomes a row, an attempt, before it is sent. Even after a crash it is repeated until it is answered. */
import type { Attempt } from "../../metadata/attempts.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Request, Rows, Uploads } from "../core/index.ts";
import type { Pending, Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { priorityOf } from "./slots.ts";

/**
 * Stores the request of the step as an attempt. Undefined: the step has nothing to send. Throws an Error if the request
 * needs bytes and there is no snapshot.
 */
export function beginAttempt(context: Rows & Host, pending: Pending): Attempt<Request> | undefined {
  const { metadata, runtime } = context;
  return metadata.transaction(() => {
    const { row, step } = pending;
    const request =
      step.do === "send"
        ? step.request
        : step.do === "breakCycle"
          ? breakCycle(context, row, step.ifRevision)
          : undefined;
    if (request === undefined) return undefined;
    const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
    const needsBytes = (request.do === "upload" || request.do === "content") && request.size > 0;
    const snapshot = needsBytes && entry !== undefined ? metadata.snapshots.newestOf(entry.inode) : undefined;
    if (needsBytes && snapshot === undefined) throw new Error(`node row ${row.id} has nothing to send`);
    const now = runtime.now();
    return metadata.attempts.create({
      node: row.id,
      key: runtime.uuid(),
      request,
      snapshot: snapshot?.id ?? null,
      nextAt: now,
      createdAt: now,
      priority: needsBytes ? priorityOf(request.size) : "small",
    });
  });
}

/** Gives the node a temporary name in its folder, until the other nodes of the rename cycle have moved. */
function breakCycle(context: Host, row: NodeRow, ifRevision: number): Request | undefined {
  if (row.nodeId === null || row.base?.parent == null) return undefined;
  const name = `.wsfs-moving-${context.runtime.uuid()}`;
  return { do: "patch", nodeId: row.nodeId, ifRevision, parent: row.base.parent, name };
}

/**
 * Called in the transaction in which a snapshot of a file that is open for writing is stored. Stores the requests of
 * that snapshot at once. Otherwise the next byte that the program writes would make the content need another snapshot
 * first, and the same would happen to that one. Requests of an older snapshot give way.
 */
export function attemptAtOnce(context: Rows & LocalFiles & Uploads & Host & Tree & Sync, inode: InodeId): void {
  context.snapshotFiles.yieldToNewer(inode);
  for (const { id } of context.nodeRows.ofInode(inode)) {
    const pending = context.planner.advance(id);
    if (pending?.step.do === "send") beginAttempt(context, pending);
  }
  context.activity.wake();
}
