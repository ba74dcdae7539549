/**
 * Removes blobs that no row names any more. A blob stays while a row names it, while an upload writes it (`staged`),
 * and while a change that released it is not committed: if that change were undone, its row would name the blob again.
 */
import type { Context } from "./context.ts";
import { pause } from "./source-trees.ts";

type Needs = Pick<Context, "store" | "blobs" | "clock" | "staged">;

/** The number of blobs that are looked at without a pause. */
const SLICE = 500;

/** True if it was removed. It stays, for example, while a backup holds it. */
export async function freeBlob(
  { store, blobs, clock }: Pick<Needs, "store" | "blobs" | "clock">,
  blob: string,
): Promise<boolean> {
  await store.committed();
  if (!(await blobs.remove(blob))) return false;
  clock.step("gateway: blob collected");
  return true;
}

/** Removes all unused blobs and returns their number. `isDry`: only counts them. */
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
