/**
 * What a writer may not disturb: an upload that reads the live file itself. It is given up for the
 * newer content the writer will leave, its key remembered; the third time for one inode it gets a
 * copy instead, so that a file saved again and again still arrives.
 */
import type { Context } from "./context.ts";
import { dropGeneration } from "./generation.ts";

const INTERRUPTIONS_MAX = 2;

/** After this nobody reads the live file of this lineage for sending. */
export async function freeForWriter(context: Context, lineage: number): Promise<void> {
  const { metadata, runtime, paths, interruptions } = context;
  for (const generation of metadata.generations.ofLineage(lineage)) {
    const attempt = metadata.attempts.ofGeneration(generation.id);
    const count = interruptions.get(generation.inode) ?? 0;
    if (attempt === undefined || count < INTERRUPTIONS_MAX) {
      interruptions.set(generation.inode, count + 1);
      metadata.transaction(() => {
        // Whether it arrived is not known; should it have, its key says that it was ours.
        if (attempt !== undefined) metadata.attempts.abandon(attempt.id);
        dropGeneration(context, generation.id);
      });
      context.sending.get(generation.id)?.();
      continue;
    }
    const copy = paths.generation(generation.id);
    await paths.prepareFolderOf(copy);
    await runtime.files.remove(copy);
    await runtime.files.clone(paths.live(lineage), copy);
    if (metadata.generations.get(generation.id) === undefined) {
      await runtime.files.remove(copy);
      continue;
    }
    metadata.generations.detach(generation.id);
    interruptions.delete(generation.inode);
    // What is under way reads the live file: it is sent again from the copy.
    context.sending.get(generation.id)?.();
  }
}
