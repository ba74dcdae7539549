/**
 * Uploads that are ended before they are answered: one that reads the live file itself, for a writer; one of content that
 * has moved on, for the newer one; one of a name that is gone. Whether it was carried out all the same is not known: its
 * key, which is remembered, says so. An upload that gives way to newer content goes on the third time, so that a file
 * saved again and again still arrives; for a writer it gets a copy then.
 */
import type { Attempt, Snapshot } from "../../metadata/attempts.ts";
import type { InodeId, KernelNodeId, NodeRowId } from "../../metadata/ids.ts";
import {
  enqueue,
  enqueueInode,
  type Host,
  isKeyed,
  type LocalFiles,
  type Remote,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import { removeSnapshot } from "./snapshot-source.ts";

const INTERRUPTIONS_MAX = 2;

/** What is being sent of this inode is older than what has been saved by now: it gives way. */
export function yieldToNewer(context: Rows & LocalFiles & Remote & Uploads & Host, inode: InodeId): void {
  const { metadata, cancellations, client } = context;
  if (metadata.snapshots.newestOf(inode) === undefined) return;
  const count = cancellations.get(inode) ?? 0;
  if (count >= INTERRUPTIONS_MAX || !client.features.lastKey) return;
  const older = metadata.snapshots
    .sentOf(inode)
    .filter(({ changes }) => changes !== metadata.inodes.get(inode)?.changes);
  if (older.length > 0) cancellations.set(inode, count + 1);
  for (const snapshot of older) giveUp(context, snapshot);
}

/** Within the transaction in which the row's name goes, or shows another file: nobody wants what is being sent. */
export function cancelUpload(context: Rows & LocalFiles & Remote & Uploads & Host, row: NodeRowId): void {
  const { metadata, runtime, client, sending } = context;
  const attempt = metadata.attempts.openOf(row);
  const snapshot = attempt?.generation == null ? undefined : metadata.snapshots.get(attempt.generation);
  if (attempt === undefined || snapshot === undefined) return;
  if (!client.features.lastKey || !isKeyed(attempt.request, client.features)) return;
  metadata.attempts.abandon(attempt.id, runtime.now());
  // Under another name the same cut is sent, or will be.
  const isUsed = metadata.attempts.ofSnapshot(snapshot.id).length + metadata.entries.links(snapshot.inode) > 0;
  if (!isUsed) removeSnapshot(context, snapshot);
  metadata.afterCommit(() => sending.get(attempt.id)?.());
}

/** After this nobody reads the live file of this lineage for sending, unless a new cut was made meanwhile. */
export async function cancelForWriter(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  lineage: KernelNodeId,
): Promise<void> {
  const { metadata, cancellations } = context;
  for (const snapshot of metadata.snapshots.ofKernelNodeId(lineage)) {
    const count = cancellations.get(snapshot.inode) ?? 0;
    const isSent = metadata.attempts.ofSnapshot(snapshot.id).length > 0;
    // One that is given up is known again by its key only.
    const isPatient = count < INTERRUPTIONS_MAX && context.client.features.lastKey;
    if (isSent && !isPatient && (await detach(context, lineage, snapshot))) continue;
    if (isSent) cancellations.set(snapshot.inode, count + 1);
    giveUp(context, snapshot);
  }
}

/**
 * Its bytes cannot be read any more, and nobody could send it: what else is left of the content is cut anew, or, if
 * nobody has it any more, the row goes.
 */
export function giveUpUnreadable(
  context: Rows & LocalFiles & Uploads & Host,
  { id, node, generation: cut }: Attempt<unknown>,
): void {
  const { metadata, runtime, log } = context;
  const snapshot = cut === null ? undefined : metadata.snapshots.get(cut);
  log.warn({ attempt: id, node, generation: cut }, "a cut cannot be read for sending, its content is cut anew");
  metadata.transaction(() => {
    if (snapshot === undefined) metadata.attempts.abandon(id, runtime.now());
    else giveUp(context, snapshot);
    enqueue(context, metadata.nodes.get(node));
  });
}

/** The content counts as not cut: whoever closes the file last leaves a new cut, written or not. */
function giveUp(context: Rows & LocalFiles & Uploads & Host, snapshot: Snapshot): void {
  const { metadata, sending } = context;
  const attempts = metadata.attempts.ofSnapshot(snapshot.id);
  metadata.transaction(() => {
    // Whether they arrived is not known; should they have, their keys say that they were ours.
    for (const { id } of attempts) {
      metadata.attempts.abandon(id, context.runtime.now());
      metadata.afterCommit(() => sending.get(id)?.());
    }
    removeSnapshot(context, snapshot);
    const inode = metadata.inodes.get(snapshot.inode);
    if (inode === undefined || inode.changes !== snapshot.changes || inode.content !== "dirty") return;
    // A late answer must not take what the writer leaves for what was sent.
    metadata.inodes.update(inode.id, { hash: null, changes: inode.changes + 1 });
    enqueueInode(context, inode.id);
  });
  context.runtime.step("upload: given up for a writer");
}

/** Gives the cut a file of its own; false if the disk does not allow it. */
async function detach(
  context: Rows & LocalFiles & Uploads & Host,
  lineage: KernelNodeId,
  snapshot: Snapshot,
): Promise<boolean> {
  const { metadata, runtime, paths, log, sending } = context;
  const path = paths.snapshot(snapshot.id);
  try {
    await paths.prepareFolderOf(path);
    // Left by a crash, or a try before.
    await runtime.files.remove(path);
    await runtime.files.clone(paths.cacheFile(lineage), path);
    await syncCopy(context, path);
  } catch (error) {
    log.warn({ err: error, generation: snapshot.id }, "a cut could not be copied, its upload is given up");
    await runtime.files.remove(path).catch(() => {});
    return false;
  }
  if (metadata.snapshots.get(snapshot.id) === undefined) {
    await runtime.files.remove(path);
    return true;
  }
  runtime.step("upload: copied for a writer");
  metadata.snapshots.detach(snapshot.id);
  // What is under way reads the live file: the same request goes on from the copy.
  for (const attempt of metadata.attempts.ofSnapshot(snapshot.id)) sending.get(attempt.id)?.();
  return true;
}

/** The row says that the cut is synced: that must be true of the copy too. */
export async function syncCopy(context: LocalFiles & Host, path: string): Promise<void> {
  const file = await context.runtime.files.open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await context.paths.syncFolderOf(path);
}
