/**
 * Before a row says that a file is cut, its bytes and its name must be safe from power loss. A few
 * are synced each by itself; many at about the same time by one sync of their disk, which costs
 * about what two or three of them do. Knows nothing of rows.
 */
import type { CacheFile, Host, LocalFiles } from "../core/index.ts";
import { syncName } from "../files/index.ts";

/** From so many on they share one sync. */
const MANY = 4;
/** A bigger file is not waited for by others. */
const SMALL = 1024 * 1024;
/** Twice in a row: others write so much to this disk that a sync of all of it takes longer than one of each file … */
const SLOW_MS = 500;
/** … so for so many times as long as that took. Once: it was what nobody had synced before. */
const WARY_TIMES = 10;

/** Rejects with the error of the disk. */
export function syncForSnapshot(context: LocalFiles & Host, cacheFile: CacheFile, size: number): Promise<void> {
  const { groupSync, runtime } = context;
  if (isAlone(context, cacheFile) || size > SMALL || runtime.elapsed() < groupSync.aloneUntil)
    return syncAlone(context, cacheFile);
  return new Promise((resolve) => {
    groupSync.waiting.push({ live: cacheFile, done: resolve });
    if (groupSync.isRunning) return;
    groupSync.isRunning = true;
    runtime.soon(() => void syncWaiting(context));
  });
}

/** Whoever has it open besides, or had, may know that bytes of it were lost: only a sync of the file itself tells. */
function isAlone({ disk }: LocalFiles, { use: { opens, isUsed } }: CacheFile): boolean {
  return opens > 1 || isUsed || disk.trouble !== undefined;
}

async function syncAlone(context: LocalFiles & Host, cacheFile: CacheFile): Promise<void> {
  await cacheFile.disk.sync();
  if (context.disk.trouble !== "gone") await syncName(context, cacheFile);
}

/** One round after the other: what comes during one, which may have begun too early for it, goes with the next. Never rejects. */
async function syncWaiting(context: LocalFiles & Host): Promise<void> {
  const { groupSync, runtime, paths } = context;
  while (groupSync.waiting.length > 0) {
    const round = groupSync.waiting.splice(0);
    const isTogether = round.length >= MANY && (await succeeds(syncDisk));
    const results = round.map(({ live: cacheFile, done }) => {
      // Somebody may have come, or gone, since it began to wait.
      const isSynced = isTogether && !isAlone(context, cacheFile);
      if (isSynced) cacheFile.disk.isNew = false;
      const result = isSynced ? Promise.resolve() : syncAlone(context, cacheFile);
      done(result);
      return result;
    });
    // Those that come meanwhile are many then.
    await Promise.allSettled(results);
  }
  groupSync.isRunning = false;

  async function syncDisk(): Promise<void> {
    const begun = runtime.elapsed();
    try {
      await runtime.files.syncDisk(paths.root);
    } catch (error) {
      // It tells of each failure once, whoever's file that was: from now on each is asked by itself.
      groupSync.aloneUntil = Number.POSITIVE_INFINITY;
      throw error;
    }
    const took = runtime.elapsed() - begun;
    const isSlow = took > SLOW_MS;
    if (isSlow && groupSync.wasSlow) groupSync.aloneUntil = runtime.elapsed() + WARY_TIMES * took;
    groupSync.wasSlow = isSlow;
  }
}

/** Which file it failed for is found out by syncing each. */
async function succeeds(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}
