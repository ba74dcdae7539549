/**
 * Uploads that are ended before they are answered: one that reads the live file itself, for a writer; one of content that
 * has moved on, for the newer one; one of a name that is gone. Whether it was carried out all the same is not known: its
 * key, which is remembered, says so. An upload that gives way to newer content goes on the third time, so that a file
 * saved again and again still arrives; for a writer it gets a copy then.
 */
import type { Attempt, Snapshot } from "../../metadata/attempts.ts";
import type { InodeId, Lineage, NodeRowId } from "../../metadata/ids.ts";
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
  if (metadata.generations.newestOf(inode) === undefined) return;
  const count = cancellations.get(inode) ?? 0;
  if (count >= INTERRUPTIONS_MAX || !client.features.lastKey) return;
  const older = metadata.generations
    .sentOf(inode)
    .filter(({ changes }) => changes !== metadata.inodes.get(inode)?.changes);
  if (older.length > 0) cancellations.set(inode, count + 1);
  for (const generation of older) giveUp(context, generation);
}

/** Within the transaction in which the row's name goes, or shows another file: nobody wants what is being sent. */
export function cancelUpload(context: Rows & LocalFiles & Remote & Uploads & Host, row: NodeRowId): void {
  const { metadata, runtime, client, sending } = context;
  const attempt = metadata.attempts.openOf(row);
  const generation = attempt?.generation == null ? undefined : metadata.generations.get(attempt.generation);
  if (attempt === undefined || generation === undefined) return;
  if (!client.features.lastKey || !isKeyed(attempt.request, client.features)) return;
  metadata.attempts.abandon(attempt.id, runtime.now());
  // Under another name the same cut is sent, or will be.
  const isUsed = metadata.attempts.ofGeneration(generation.id).length + metadata.entries.links(generation.inode) > 0;
  if (!isUsed) removeSnapshot(context, generation);
  metadata.afterCommit(() => sending.get(attempt.id)?.());
}

/** After this nobody reads the live file of this lineage for sending, unless a new cut was made meanwhile. */
export async function cancelForWriter(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  lineage: Lineage,
): Promise<void> {
  const { metadata, cancellations } = context;
  for (const generation of metadata.generations.ofLineage(lineage)) {
    const count = cancellations.get(generation.inode) ?? 0;
    const isSent = metadata.attempts.ofGeneration(generation.id).length > 0;
    // One that is given up is known again by its key only.
    const isPatient = count < INTERRUPTIONS_MAX && context.client.features.lastKey;
    if (isSent && !isPatient && (await detach(context, lineage, generation))) continue;
    if (isSent) cancellations.set(generation.inode, count + 1);
    giveUp(context, generation);
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
  const generation = cut === null ? undefined : metadata.generations.get(cut);
  log.warn({ attempt: id, node, generation: cut }, "a cut cannot be read for sending, its content is cut anew");
  metadata.transaction(() => {
    if (generation === undefined) metadata.attempts.abandon(id, runtime.now());
    else giveUp(context, generation);
    enqueue(context, metadata.nodes.get(node));
  });
}

/** The content counts as not cut: whoever closes the file last leaves a new cut, written or not. */
function giveUp(context: Rows & LocalFiles & Uploads & Host, generation: Snapshot): void {
  const { metadata, sending } = context;
  const attempts = metadata.attempts.ofGeneration(generation.id);
  metadata.transaction(() => {
    // Whether they arrived is not known; should they have, their keys say that they were ours.
    for (const { id } of attempts) {
      metadata.attempts.abandon(id, context.runtime.now());
      metadata.afterCommit(() => sending.get(id)?.());
    }
    removeSnapshot(context, generation);
    const inode = metadata.inodes.get(generation.inode);
    if (inode === undefined || inode.changes !== generation.changes || inode.content !== "dirty") return;
    // A late answer must not take what the writer leaves for what was sent.
    metadata.inodes.update(inode.id, { hash: null, changes: inode.changes + 1 });
    enqueueInode(context, inode.id);
  });
  context.runtime.step("upload: given up for a writer");
}

/** Gives the cut a file of its own; false if the disk does not allow it. */
async function detach(
  context: Rows & LocalFiles & Uploads & Host,
  lineage: Lineage,
  generation: Snapshot,
): Promise<boolean> {
  const { metadata, runtime, paths, log, sending } = context;
  const path = paths.generation(generation.id);
  try {
    await paths.prepareFolderOf(path);
    // Left by a crash, or a try before.
    await runtime.files.remove(path);
    await runtime.files.clone(paths.live(lineage), path);
    await syncCopy(context, path);
  } catch (error) {
    log.warn({ err: error, generation: generation.id }, "a cut could not be copied, its upload is given up");
    await runtime.files.remove(path).catch(() => {});
    return false;
  }
  if (metadata.generations.get(generation.id) === undefined) {
    await runtime.files.remove(path);
    return true;
  }
  runtime.step("upload: copied for a writer");
  metadata.generations.detach(generation.id);
  // What is under way reads the live file: the same request goes on from the copy.
  for (const attempt of metadata.attempts.ofGeneration(generation.id)) sending.get(attempt.id)?.();
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
