/**
 * Cancels uploads before they are answered:
 * - an upload that reads the cache file itself, when a writer is to be admitted;
 * - an upload of older content, when newer content was saved;
 * - an upload whose name is gone.
 *
 * The gateway may have carried out a cancelled upload all the same. Then it is recognised by its key, which is
 * remembered. After INTERRUPTIONS_MAX cancellations in a row, an upload is not cancelled for newer content any more, so
 * that a file that is saved again and again still arrives. For a writer, its snapshot is copied instead.
 */
import type { Attempt, Snapshot } from "../../metadata/attempts.ts";
import type { InodeId, KernelNodeId, NodeRowId } from "../../metadata/ids.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";
import type { LocalFiles } from "./room.ts";
import { removeSnapshot } from "./snapshot-source.ts";

const INTERRUPTIONS_MAX = 2;

/** Cancels the uploads of older content of this inode: newer content was saved. */
export function yieldToNewer(context: Rows & LocalFiles & Remote & Uploads & Host, inode: InodeId): void {
  const { metadata, cancellations, client } = context;
  if (metadata.snapshots.newestOf(inode) === undefined) return;
  const count = cancellations.get(inode) ?? 0;
  if (count >= INTERRUPTIONS_MAX || !client.features.isFull) return;
  const older = metadata.snapshots
    .sentOf(inode)
    .filter(({ changes }) => changes !== metadata.inodes.get(inode)?.changes);
  if (older.length > 0) cancellations.set(inode, count + 1);
  for (const snapshot of older) giveUp(context, snapshot);
}

/**
 * Call it in the transaction in which the name of the row is removed or becomes another file's: the upload is not
 * wanted any more.
 */
export function cancelUpload(context: Rows & LocalFiles & Remote & Uploads & Host, row: NodeRowId): void {
  const { metadata, runtime, client, sending } = context;
  const attempt = metadata.attempts.openOf(row);
  const snapshot = attempt?.snapshot == null ? undefined : metadata.snapshots.get(attempt.snapshot);
  if (attempt === undefined || snapshot === undefined) return;
  if (!client.features.isFull) return;
  metadata.attempts.abandon(attempt.id, runtime.now());
  // Another name of the inode may send this snapshot, now or later.
  const isUsed = metadata.attempts.ofSnapshot(snapshot.id).length + metadata.entries.links(snapshot.inode) > 0;
  if (!isUsed) removeSnapshot(context, snapshot);
  metadata.afterCommit(() => sending.get(attempt.id)?.());
}

/** Resolves when no upload reads the cache file any more. But a new snapshot may have been taken meanwhile. */
export async function cancelForWriter(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  kernelNodeId: KernelNodeId,
): Promise<void> {
  const { metadata, cancellations } = context;
  for (const snapshot of metadata.snapshots.ofKernelNodeId(kernelNodeId)) {
    const count = cancellations.get(snapshot.inode) ?? 0;
    const isSent = metadata.attempts.ofSnapshot(snapshot.id).length > 0;
    // A cancelled upload can only be recognised by its key, which a plain gateway does not tell.
    const isPatient = count < INTERRUPTIONS_MAX && context.client.features.isFull;
    if (isSent && !isPatient && (await detach(context, kernelNodeId, snapshot))) continue;
    if (isSent) cancellations.set(snapshot.inode, count + 1);
    giveUp(context, snapshot);
  }
}

/**
 * The snapshot cannot be read any more, so it cannot be sent. A new snapshot is taken of the content that is left. If
 * there is none, the plan removes the row.
 */
export function giveUpUnreadable(
  context: Rows & LocalFiles & Uploads & Host,
  { id, node, snapshot: snapshotId }: Attempt<unknown>,
): void {
  const { metadata, runtime, log } = context;
  const snapshot = snapshotId === null ? undefined : metadata.snapshots.get(snapshotId);
  log.warn({ attempt: id, node, generation: snapshotId }, "a snapshot cannot be read for sending, another is taken");
  metadata.transaction(() => {
    if (snapshot === undefined) metadata.attempts.abandon(id, runtime.now());
    else giveUp(context, snapshot);
    context.queue.enqueue(metadata.nodes.get(node));
  });
}

/**
 * Abandons the attempts of a snapshot and removes it. The content counts as changed since, so the last close of the
 * file leads to a new snapshot, also if the file is not written.
 */
function giveUp(context: Rows & LocalFiles & Uploads & Host, snapshot: Snapshot): void {
  const { metadata, sending } = context;
  const attempts = metadata.attempts.ofSnapshot(snapshot.id);
  metadata.transaction(() => {
    // The gateway may have carried out the attempts. Their keys show then that these are own writes.
    for (const { id } of attempts) {
      metadata.attempts.abandon(id, context.runtime.now());
      metadata.afterCommit(() => sending.get(id)?.());
    }
    removeSnapshot(context, snapshot);
    const inode = metadata.inodes.get(snapshot.inode);
    if (inode === undefined || inode.changes !== snapshot.changes || inode.content !== "dirty") return;
    // Without another number of changes, a late answer would count the writer's content as sent.
    metadata.inodes.update(inode.id, { hash: null, changes: inode.changes + 1 });
    context.queue.enqueueInode(inode.id);
  });
  context.runtime.step("upload: given up for a writer");
}

/** Gives the snapshot a file of its own; false: the disk does not allow it. */
async function detach(
  context: Rows & LocalFiles & Uploads & Host,
  kernelNodeId: KernelNodeId,
  snapshot: Snapshot,
): Promise<boolean> {
  const { metadata, runtime, paths, log, sending } = context;
  const path = paths.snapshot(snapshot.id);
  try {
    await paths.prepareFolderOf(path);
    // A crash or an earlier try may have left a file there.
    await runtime.files.remove(path);
    await runtime.files.clone(paths.cacheFile(kernelNodeId), path);
    await syncCopy(context, path);
  } catch (error) {
    log.warn({ err: error, generation: snapshot.id }, "a snapshot could not be copied, its upload is given up");
    await runtime.files.remove(path).catch(() => {});
    return false;
  }
  if (metadata.snapshots.get(snapshot.id) === undefined) {
    await runtime.files.remove(path);
    return true;
  }
  runtime.step("upload: copied for a writer");
  metadata.snapshots.detach(snapshot.id);
  // The requests under way read the cache file. They are stopped, and the same requests are sent again from the copy.
  for (const attempt of metadata.attempts.ofSnapshot(snapshot.id)) sending.get(attempt.id)?.();
  return true;
}

/** Syncs the copy of a snapshot, because the row says that the snapshot is synced. Rejects with the disk's error. */
export async function syncCopy(context: LocalFiles & Host, path: string): Promise<void> {
  const file = await context.runtime.files.open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await context.paths.syncFolderOf(path);
}
