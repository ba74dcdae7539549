/** Generations that exist: their bytes, and their end. */
import { createFileSource } from "../content/source.ts";
import type { ContentSource } from "../contract/http.ts";
import type { Generation } from "../metadata/attempts.ts";
import type { Context } from "./context.ts";

/** The bytes of a generation, from where they are at this moment. */
export function generationSource(context: Context, generation: Generation): ContentSource {
  const { paths, runtime } = context;
  const path = generation.lineage === null ? paths.generation(generation.id) : paths.live(generation.lineage);
  return createFileSource(runtime.files, path, generation.size);
}

/** Removes the row, and the file if it has one of its own. */
export function dropGeneration(context: Context, id: number): void {
  const { metadata, runtime, paths, log } = context;
  const generation = metadata.generations.get(id);
  if (generation === undefined) return;
  metadata.generations.remove(id);
  if (generation.lineage !== null) return;
  void runtime.files
    .remove(paths.generation(id))
    .catch((error: unknown) => log.warn({ err: error, generation: id }, "a sent cut could not be removed"));
}
