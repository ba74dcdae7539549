/**
 * The bytes of small cuts, from when they were hashed until they are sent: read once, not twice.
 * Whoever does not find them here reads the file.
 */
import type { GenerationId } from "../../metadata/ids.ts";
import type { Context } from "../context/context.ts";

/** More than this is not kept: the first ones go. */
const KEPT = 256;

/** By the id of the generation. The bytes are nobody's to change. */
export function keepSmall(
  { smallCuts }: Pick<Context, "smallCuts">,
  generation: GenerationId,
  bytes: Uint8Array,
): void {
  const [first] = smallCuts.size < KEPT ? [] : smallCuts.keys();
  if (first !== undefined) smallCuts.delete(first);
  smallCuts.set(generation, bytes);
}
