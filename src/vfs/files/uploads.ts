/**
 * What a writer may not disturb: an upload that reads the live file itself. It is given up for the
 * newer content the writer will leave, its key remembered; the third time for one inode it gets a
 * copy instead, so that a file saved again and again still arrives.
 */
import type { Attempt, Generation } from "../../metadata/attempts.ts";
import { lookAgain, lookAgainAtInode } from "../context/changes.ts";
import type { Context } from "../context/context.ts";
import { removeGeneration } from "./generation.ts";

const INTERRUPTIONS_MAX = 2;

/** After this nobody reads the live file of this lineage for sending, unless a new cut was made meanwhile. */
export async function freeForWriter(context: Context, lineage: number): Promise<void> {
  const { metadata, interruptions } = context;
  for (const generation of metadata.generations.ofLineage(lineage)) {
    const count = interruptions.get(generation.inode) ?? 0;
    const isSent = metadata.attempts.ofGeneration(generation.id).length > 0;
    // One that is given up is known again by its key only.
    const isPatient = count < INTERRUPTIONS_MAX && context.client.features.lastKey;
    if (isSent && !isPatient && (await detach(context, lineage, generation))) continue;
    if (isSent) interruptions.set(generation.inode, count + 1);
    giveUp(context, generation);
  }
}

/**
 * Its bytes cannot be read any more, and nobody could send it: what else is left of the content is cut anew, or, if
 * nobody has it any more, the row goes.
 */
export function giveUpUnreadable(context: Context, { id, node, generation: cut }: Attempt<unknown>): void {
  const { metadata, runtime, log } = context;
  const generation = cut === null ? undefined : metadata.generations.get(cut);
  log.warn({ attempt: id, node, generation: cut }, "a cut cannot be read for sending, its content is cut anew");
  metadata.transaction(() => {
    if (generation === undefined) metadata.attempts.abandon(id, runtime.now());
    else giveUp(context, generation);
    lookAgain(context, metadata.nodes.get(node));
  });
}

/** The content counts as not cut: whoever closes the file last leaves a new cut, written or not. */
function giveUp(context: Context, generation: Generation): void {
  const { metadata, sending } = context;
  const attempts = metadata.attempts.ofGeneration(generation.id);
  metadata.transaction(() => {
    // Whether they arrived is not known; should they have, their keys say that they were ours.
    for (const attempt of attempts) metadata.attempts.abandon(attempt.id, context.runtime.now());
    removeGeneration(context, generation);
    const inode = metadata.inodes.get(generation.inode);
    if (inode === undefined || inode.changes !== generation.changes || inode.content !== "dirty") return;
    // A late answer must not take what the writer leaves for what was sent.
    metadata.inodes.update(inode.id, { hash: null, changes: inode.changes + 1 });
    lookAgainAtInode(context, inode.id);
  });
  context.runtime.step("upload: given up for a writer");
  for (const attempt of attempts) sending.get(attempt.id)?.();
}

/** Gives the cut a file of its own; false if the disk does not allow it. */
async function detach(context: Context, lineage: number, generation: Generation): Promise<boolean> {
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
export async function syncCopy(context: Context, path: string): Promise<void> {
  const file = await context.runtime.files.open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await context.paths.syncFolderOf(path);
}
