/** Generations that exist: their bytes, and their end. */
import { createFileSource } from "../../content/source.ts";
import type { ContentSource } from "../../contract/http.ts";
import { systemError } from "../../lib/system-error.ts";
import type { Generation } from "../../metadata/attempts.ts";
import type { GenerationId } from "../../metadata/ids.ts";
import type { Context } from "../context/context.ts";
import { removeSoon } from "./gone-files.ts";
import { openSource } from "./open-bytes.ts";

/** The bytes of a generation, from where they are at this moment. */
export function generationSource(context: Context, generation: Generation): ContentSource {
  const { paths, runtime, smallCuts, disk } = context;
  const bytes = smallCuts.get(generation.id);
  if (bytes !== undefined) {
    return {
      size: bytes.length,
      async *read() {
        yield bytes;
      },
    };
  }
  const open = openSource(context, generation);
  if (open !== undefined) return open;
  const path = generation.lineage === null ? paths.generation(generation.id) : paths.live(generation.lineage);
  if (disk.trouble === "gone") return goneSource(path, generation.size);
  return createFileSource(runtime.files, path, generation.size);
}

/** Went with the state dir: what is found by its name is another mount's. */
function goneSource(path: string, size: number): ContentSource {
  return {
    size,
    // biome-ignore lint/correctness/useYield: there is nothing to give.
    async *read() {
      throw systemError("ENOENT", "open", path);
    },
  };
}

/** It was sent, or is not to be. One that another attempt will still send (two names of one file) goes with that. */
export function dropGeneration(context: Context, id: GenerationId): void {
  const generation = context.metadata.generations.get(id);
  if (generation === undefined || context.metadata.attempts.ofGeneration(id).length > 0) return;
  context.interruptions.delete(generation.inode);
  removeGeneration(context, generation);
}

/** Removes the row of a cut no attempt needs, and the file if it has one of its own. */
export function removeGeneration(context: Context, { id, inode, lineage }: Generation): void {
  const { metadata, bytes } = context;
  metadata.transaction(() => {
    metadata.generations.remove(id);
    context.smallCuts.delete(id);
    if (lineage === null) removeSoon(context, { kind: "generation", id });
    const then = bytes.afterSent.get(inode);
    if (then === undefined) return;
    bytes.afterSent.delete(inode);
    metadata.afterCommit(then);
  });
}
