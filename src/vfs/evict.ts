/** The cache limit: clean local files that were not used for longest go. Never dirty, open or being sent. */
import type { Context } from "./context.ts";

const BATCH = 100;

/** Adding up what is held takes a look at every row: not at each close. */
const INTERVAL_MS = 500;

export async function evict(context: Context): Promise<void> {
  const { metadata, runtime, paths, settings, lives, openings, cache } = context;
  if (runtime.elapsed() - cache.checkedAt < INTERVAL_MS) return;
  cache.checkedAt = runtime.elapsed();
  const isInUse = (lineage: number) => lives.has(lineage) || openings.has(lineage);
  let excess = metadata.lives.totalBytes() - settings.cacheLimit;
  let before = runtime.now();
  while (excess > 0) {
    const rows = metadata.lives.evictable(before, BATCH).filter((row) => !isInUse(row.lineage));
    if (rows.length === 0) return;
    for (const row of rows) {
      if (excess <= 0) return;
      // Nothing is awaited between this look and the row's end, so nobody can have opened it.
      if (isInUse(row.lineage)) continue;
      metadata.lives.remove(row.lineage);
      excess -= row.bytes;
      before = row.usedAt;
      await runtime.files.remove(paths.live(row.lineage));
    }
  }
}
