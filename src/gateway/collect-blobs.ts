/**
 * Blobs that no row names any more are removed. None goes that a row names, that an upload writes (`staged`), or that a
 * change which is not committed yet has let go of: were that undone, its row would name it again.
 */
import type { Context } from "./context.ts";
import { pause } from "./source-trees.ts";

type Needs = Pick<Context, "store" | "blobs" | "clock" | "staged">;

/** So many blobs are looked at without a pause. */
const SLICE = 500;

/** Answers whether it was removed; not while a backup holds it, say. */
export async function freeBlob(
  { store, blobs, clock }: Pick<Needs, "store" | "blobs" | "clock">,
  blob: string,
): Promise<boolean> {
  await store.committed();
  if (!(await blobs.remove(blob))) return false;
  clock.step("gateway: blob collected");
  return true;
}

/** All that are left over. Answers how many; `isDry`: they are only counted. */
export async function collectBlobs(context: Needs, isDry = false): Promise<number> {
  const { store, blobs, staged } = context;
  const user = store.prepare("SELECT 1 FROM content WHERE blob = ?");
  let collected = 0;
  let looked = 0;
  for await (const blob of blobs.list()) {
    looked += 1;
    if (looked % SLICE === 0) await pause();
    if (staged.has(blob) || user.get(blob) !== undefined) continue;
    if (isDry || (await freeBlob(context, blob))) collected += 1;
  }
  return collected;
}
