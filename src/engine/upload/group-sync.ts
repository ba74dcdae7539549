/**
 * The bytes and the name of a file must be durable before a row says that a snapshot exists. A few files are synced one
 * by one. Many files at about the same time are synced by one sync of their disk, which costs about as much as a sync
 * of two or three of them. Knows nothing of rows.
 */
import { minus, plus } from "../../lib/clocks.ts";
import type { CacheFile, Host, LocalFiles } from "../core/index.ts";

/** From this number of files on, they share one sync of the disk. */
const MANY = 4;
/** Bytes. A bigger file is synced by itself, so that other files do not wait for it. */
const SMALL = 1024 * 1024;
/**
 * A sync of the disk that takes longer is slow. One slow sync means little: it wrote bytes that were not synced before.
 * Two in a row mean that other programs write so much to this disk that a sync of it takes longer than a sync of each
 * file.
 */
const SLOW_MS = 500;
/** After two slow syncs in a row, files are synced one by one for this many times as long as the last one took. */
const WARY_TIMES = 10;

/** Makes the file's bytes and name durable. `size`: in bytes. Rejects with the error of the disk. */
export function syncForSnapshot(context: LocalFiles & Host, cacheFile: CacheFile, size: number): Promise<void> {
  const { groupSync, runtime } = context;
  const { aloneUntil } = groupSync;
  const isWary = aloneUntil !== undefined && (aloneUntil === "end" || runtime.elapsed() < aloneUntil);
  if (isAlone(context, cacheFile) || size > SMALL || isWary) return syncAlone(context, cacheFile);
  return new Promise((resolve) => {
    groupSync.waiting.push({ cacheFile, done: resolve });
    if (groupSync.isRunning) return;
    groupSync.isRunning = true;
    runtime.soon(() => void syncWaiting(context));
  });
}

/**
 * True: the file must be synced by itself. The kernel may have reported lost bytes of the file to a program that has or
 * had it open. Then only a sync of the file itself tells us of the loss. While the disk is in trouble, this holds for
 * all files.
 */
function isAlone({ disk }: LocalFiles, { isUsed }: CacheFile): boolean {
  return isUsed || disk.trouble !== undefined;
}

async function syncAlone(context: LocalFiles, cacheFile: CacheFile): Promise<void> {
  await cacheFile.sync();
  if (context.disk.trouble !== "gone") await cacheFile.syncName();
}

/**
 * Syncs the waiting files, in rounds. A file that comes during a round goes with the next one, because the sync may
 * have begun too early for it. Never rejects.
 */
async function syncWaiting(context: LocalFiles & Host): Promise<void> {
  const { groupSync, runtime, paths } = context;
  while (groupSync.waiting.length > 0) {
    const round = groupSync.waiting.splice(0);
    const isTogether = round.length >= MANY && (await succeeds(syncDisk));
    const results = round.map(({ cacheFile, done }) => {
      // While the file waited, a program may have opened or closed it.
      const isSynced = isTogether && !isAlone(context, cacheFile);
      if (isSynced) cacheFile.nameIsDurable();
      const result = isSynced ? Promise.resolve() : syncAlone(context, cacheFile);
      done(result);
      return result;
    });
    // Waits for the end of the round, so that many files come meanwhile and share the next sync.
    await Promise.allSettled(results);
  }
  groupSync.isRunning = false;

  async function syncDisk(): Promise<void> {
    const begun = runtime.elapsed();
    try {
      await runtime.files.syncDisk(paths.root);
    } catch (error) {
      // The disk reports each failure once, and does not name the file. From now on each file is synced by itself.
      groupSync.aloneUntil = "end";
      throw error;
    }
    const took = minus(runtime.elapsed(), begun);
    const isSlow = took > SLOW_MS;
    if (isSlow && groupSync.wasSlow) groupSync.aloneUntil = plus(runtime.elapsed(), WARY_TIMES * took);
    groupSync.wasSlow = isSlow;
  }
}

/** False: `work` failed. Then each file is synced by itself, which shows the file that failed. */
async function succeeds(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}
