/** The cache limit: clean local files that were not used for longest go. Never dirty, open or being sent. */
import type { Context } from "./context.ts";

const BATCH = 100;

export async function evict(context: Context): Promise<void> {
  const { metadata, runtime, paths, settings, lives } = context;
  let excess = metadata.lives.totalBytes() - settings.cacheLimit;
  let before = runtime.now();
  while (excess > 0) {
    const rows = metadata.lives.evictable(before, BATCH).filter((row) => !lives.has(row.lineage));
    if (rows.length === 0) return;
    for (const row of rows) {
      if (excess <= 0) return;
      // Nothing is awaited between this look and the row's end, so nobody can have opened it.
      if (lives.has(row.lineage)) continue;
      metadata.lives.remove(row.lineage);
      excess -= row.bytes;
      before = row.usedAt;
      await runtime.files.remove(paths.live(row.lineage));
    }
  }
}
