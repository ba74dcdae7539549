/**
 * Live files: opened, shared by every open of a lineage, closed. The row says what may be on disk
 * before the file does, and the inode says "open" before a writer can write, so that a crash at any
 * point leaves bytes that are looked at, never bytes that are taken for clean.
 */
import { dirname } from "node:path";
import { type FileStat, isSameStat } from "../../lib/files.ts";
import { compareTimes, formatTime, type Time } from "../../lib/time.ts";
import type { Lineage } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { fromDisk } from "../api/index.ts";
import {
  alone,
  byKernelRequest,
  type CacheFile,
  enqueueAfterQuiet,
  type Host,
  inBackground,
  isLongerThanShown,
  type LocalFiles,
  mayHaveUnpersistedStat,
  type Remote,
  type Rows,
  setInodeDirty,
  type Uploads,
} from "../core/index.ts";
import { isUncut, openFile, openNewFile, regain, requireCurrent } from "./backing-file.ts";
import { cancelForWriter, yieldToNewer } from "./cancel-upload.ts";
import { logClean } from "./dirty-file-log.ts";
import { despiteFullDisk, requireDisk } from "./disk-room.ts";
import { evictSoon } from "./evict.ts";
import { removeSoon } from "./file-removal.ts";
import { recordArrived } from "./missing-ranges.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";
import { setContentDirty } from "./set-dirty.ts";
import { ctimeOf, mtimeOf } from "./times.ts";
import { detectWrites, type Look } from "./write-detection.ts";

/** When a file was used is known no better than this: a row is not written for less. */
const USED_MS = 10_000;

/** Counts as one open until closeLive. A writable one has marked the inode durably before this resolves. */
export async function openCacheFile(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  lineage: Lineage,
  options: {
    write: boolean;
    /** Its row was made with the inode's, and there is no file yet. */
    isNew?: boolean;
    /** False: to be sent, which is no reason to keep it here for longer. */
    isUse?: boolean;
  },
): Promise<CacheFile> {
  const live = await hold(context, lineage, options.isNew ?? false);
  live.use.isUsed ||= options.isUse ?? true;
  try {
    if (!live.disk.isKept) await haveFile(context, live, options.write);
    if (options.write) await becomeWriter(context, live);
    else requireCurrent(context, lineage);
    return live;
  } catch (error) {
    await closeCacheFile(context, live, { write: false });
    throw fromDisk(error, `live file ${lineage} cannot be opened`);
  }
}

/** A writer needs the file, and hears why there is none; a reader can do without. */
async function haveFile(context: Rows & LocalFiles & Remote & Host, live: CacheFile, isNeeded: boolean): Promise<void> {
  if (isNeeded) {
    await requireDisk(context);
    await regain(context, live);
  } else if (context.disk.trouble === undefined && context.disk.mayKeep) {
    await regain(context, live).catch((error: unknown) => context.disk.refused(error));
  }
}

async function hold(context: Rows & LocalFiles & Remote & Host, lineage: Lineage, isNew: boolean): Promise<CacheFile> {
  const { cacheFiles, fileState, disk } = context;
  let isUntried = isNew;
  for (let mayBeAbsent = disk.trouble !== undefined; ; ) {
    requireCurrent(context, lineage);
    const changing = fileState.changing.get(lineage);
    if (changing !== undefined) {
      await changing;
      continue;
    }
    const open = cacheFiles.get(lineage);
    if (open !== undefined) {
      open.use.opens += 1;
      return open;
    }
    const openAlone = () =>
      alone(context, lineage, async () => {
        const there = cacheFiles.get(lineage);
        if (there !== undefined) {
          there.use.opens += 1;
          return there;
        }
        // Where it is tried again somebody else may have made the file, and written to it.
        const isFirst = isUntried;
        isUntried = false;
        const made = isFirst ? await openNewFile(context, lineage) : await openFile(context, lineage, mayBeAbsent);
        cacheFiles.set(lineage, made);
        return made;
      });
    try {
      return await despiteFullDisk(context, 0, openAlone);
    } catch (error) {
      disk.refused(error);
      // What the gateway has can be read without the disk.
      if (mayBeAbsent || disk.mayKeep) throw fromDisk(error, `live file ${lineage} cannot be opened`);
      mayBeAbsent = true;
    }
  }
}

/**
 * Before a writer is let in, no upload reads the file, its times are those of the row, and the inode
 * is durably marked. All of that must hold in the same moment, so it is looked at again after each wait.
 */
async function becomeWriter(context: Rows & LocalFiles & Remote & Uploads & Host, live: CacheFile): Promise<void> {
  const { metadata } = context;
  for (;;) {
    const inode = requireCurrent(context, live.lineage);
    const isFree = metadata.generations.ofLineage(live.lineage).length === 0;
    const isPrepared = live.use.writers > 0 || live.use.preparedTime === formatTime(mtimeOf(context, inode));
    if (isFree && isPrepared) {
      metadata.transaction(() => {
        if (live.use.writers === 0) metadata.writers.begin(inode.id);
        if (inode.content === "clean") metadata.inodes.update(inode.id, { content: "open" });
      });
      if (live.use.writers === 0) {
        live.changes.isContentDirty = isUncut(inode);
        // What is uncut has its pause from here on.
        live.changes.lastWriteAt = context.runtime.elapsed();
        // While nobody wrote, the kernel was told what the rows have, which may be older than the file.
        live.changes.shownSize = live.changes.hasUnpersistedStat || inode.content === "open" ? "unknown" : inode.size;
      }
      // Since a writer before this one: what it did could not be told to the rows.
      if (live.use.writers === 0 && inode.content === "open") setContentDirty(context, live);
      live.use.writers += 1;
      live.use.writersAdmitted += 1;
      context.runtime.step("open: marked");
      return;
    }
    live.use.preparing ??= prepareForWriter(context, live).finally(() => {
      live.use.preparing = undefined;
    });
    await live.use.preparing;
  }
}

async function prepareForWriter(context: Rows & LocalFiles & Remote & Uploads & Host, live: CacheFile): Promise<void> {
  await cancelForWriter(context, live.lineage);
  if (live.use.writers > 0) return;
  // From here on bytes that are fetched leave the times alone; those on their way are waited for.
  live.use.keepsTimes = true;
  const free = await live.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    if (live.use.writers > 0) return;
    const mtime = mtimeOf(context, requireCurrent(context, live.lineage));
    await live.disk.file.setTimes(mtime);
    context.runtime.step("open: time set");
    live.use.preparedTime = formatTime(mtime);
  } finally {
    free();
  }
}

/** Ends one open. The last writer leaves size, times and state in the rows. Never rejects: the program has gone on. */
export async function closeCacheFile(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  live: CacheFile,
  options: { write: boolean },
): Promise<void> {
  if (options.write) {
    // Until the rows are true, the file is asked: the writer counts until then. Again where another one was
    // let in meanwhile, who may have gone since.
    for (let isBehind = mayHaveUnpersistedStat(live); live.use.writers === 1 && isBehind; ) {
      const {
        use: { writersAdmitted },
      } = live;
      if (await logged(context, live, () => rowsFromFile(context, live))) {
        isBehind = live.changes.hasUnpersistedStat || live.use.writersAdmitted !== writersAdmitted;
      } else {
        // What he did nobody knows: no cut that is under way may count, and what was synced is not all there is.
        live.changes.hasUnpersistedStat = true;
        live.changes.writes += 1;
        live.passthrough.durableStat = undefined;
        break;
      }
    }
    live.use.writers -= 1;
    if (live.use.writers === 0) await logged(context, live, async () => writersLeft(context, live));
    context.activity.progressed();
  }
  live.use.opens -= 1;
  if (live.use.opens > 0) return;
  await logged(context, live, () => alone(context, live.lineage, () => closeFile(context, live)));
}

/** Whether it went well. */
async function logged(context: Host, live: CacheFile, work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    context.log.error({ err: error, inode: live.inode, lineage: live.lineage }, "closing a live file failed");
    return false;
  }
}

function writersLeft(context: Rows & LocalFiles & Remote & Uploads & Host, live: CacheFile): void {
  const { metadata } = context;
  const {
    passthrough: { lastStat, durableStat },
  } = live;
  live.use.preparedTime = undefined;
  live.pacing.snapshotTimer?.cancel();
  live.pacing.snapshotTimer = undefined;
  // A copy of the open file could not be made: that is no longer what is needed.
  context.fileState.unreadable.delete(live.lineage);
  const wasSynced = lastStat !== undefined && durableStat !== undefined && isSameStat(lastStat, durableStat);
  metadata.transaction(() => {
    const inode = metadata.inodes.get(live.inode);
    if (inode === undefined || inode.lineage !== live.lineage) return;
    if (inode.content === "open" && !live.changes.hasUnpersistedStat) {
      // Opened for writing, and nothing was written.
      metadata.inodes.update(inode.id, { content: "clean" });
      if (lastStat !== undefined) logClean(context, inode.lineage);
    }
    if (wasSynced && inode.content === "dirty") metadata.inodes.update(inode.id, { synced: 1 });
    if (live.changes.firstWriteAt !== undefined) {
      setInodeDirty(context, inode.id);
      yieldToNewer(context, inode.id);
    } else enqueueAfterQuiet(context, inode.id);
    if (metadata.overtaken.get(inode.id) !== undefined) context.activity.wake();
  });
  // What the rows could not be told is found out after a crash, or at the next close. The mark is of the inode: of a
  // version that was replaced it is left to who writes to the one that came.
  const inode = metadata.inodes.get(live.inode);
  if (!live.changes.hasUnpersistedStat && (inode === undefined || writersOf(context, inode) === 0))
    metadata.writers.end(live.inode);
  live.changes.firstWriteAt = undefined;
  live.passthrough.lastStat = undefined;
  live.passthrough.durableStat = undefined;
  if (wasSynced) {
    // Nobody can change it any more without our being asked.
    live.changes.isDurable = true;
    inBackground(context, "syncing the rows of a closed file", () => context.syncRows());
  }
  context.runtime.step("release: no writer left");
}

async function closeFile(context: Rows & LocalFiles & Remote & Host, live: CacheFile): Promise<void> {
  const { metadata, cacheFiles, fileState, runtime } = context;
  // Somebody opened it while this waited for its turn.
  if (live.use.opens > 0) return;
  for (const download of live.ranges.downloads) download.controller.abort();
  await Promise.all([...live.ranges.downloads].map((download) => download.done));
  // Whoever asked for its size and time while it was open has his answer first.
  const free = await live.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    const isRemembered = live.disk.isKept && context.disk.trouble !== "readOnly";
    if (isRemembered) await recordArrived(context, live);
    const { size, allocated } = await live.disk.file.stat();
    const row = isRemembered ? metadata.lives.get(live.lineage) : undefined;
    const isUseKnown = !live.use.isUsed || (row !== undefined && Math.abs(runtime.now() - row.usedAt) < USED_MS);
    const isKnown = row?.size === size && row.bytes === allocated && isUseKnown;
    if (row !== undefined && !isKnown) {
      const usedAt = isUseKnown ? row.usedAt : runtime.now();
      metadata.transaction(() => metadata.lives.update(live.lineage, { size, bytes: allocated, usedAt }));
    }
    runtime.step("release: recorded");
  } finally {
    free();
    fileState.uncachedReaders.delete(live);
    await Promise.all([live.disk.file, ...live.disk.former].map((file) => file.close())).finally(() =>
      cacheFiles.delete(live.lineage),
    );
    const then = fileState.afterClose.get(live.lineage);
    fileState.afterClose.delete(live.lineage);
    then?.();
    evictSoon(context);
  }
}

/** Size and mtime of a file that was written, from the file to the rows. */
export async function rowsFromFile(context: Rows & LocalFiles & Uploads & Host, live: CacheFile): Promise<void> {
  // What passed writers do after this look is another change, which the next look finds.
  let look = await detectWrites(context, live);
  while (live.changes.hasUnpersistedStat) {
    revokeWriteLeases(context, live);
    look ??= await lookNow(live);
    if (isAsSeen(live, look)) return recordStat(context, live, look.stat);
    // Changed while it was looked at; while others write, the file is asked anyway.
    if (live.use.writers > 1 || live.changes.inFlight > 0) return;
    look = undefined;
  }
}

async function lookNow(live: CacheFile): Promise<Look> {
  const {
    changes: { writes, inFlight, timesSet },
  } = live;
  return { stat: await statAsKnown(live), writes, inFlight, timesSet };
}

/** As programs know it: while bytes of the origin are put into the file, it has a time that is taken back (fetch.ts). */
async function statAsKnown(live: CacheFile): Promise<FileStat> {
  if (live.ranges.missing.length === 0) return live.disk.file.stat();
  const free = await live.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    return await live.disk.file.stat();
  } finally {
    free();
  }
}

/** Nobody was changing it when it was looked at, and nobody has since. What somebody else has found out by a later look counts as a change. */
function isAsSeen(live: CacheFile, { writes, inFlight, timesSet }: Look): boolean {
  return inFlight === 0 && live.changes.writes === writes && live.changes.timesSet === timesSet;
}

function recordStat(context: Rows & Uploads & Host, live: CacheFile, { size, allocated, mtime }: FileStat): void {
  const { metadata, runtime } = context;
  const record = () => {
    metadata.lives.update(live.lineage, { size, bytes: allocated });
    const inode = metadata.inodes.get(live.inode);
    if (inode === undefined || inode.lineage !== live.lineage) return;
    const ctime = ctimeOf(inode, mtimeOf(context, inode), mtime, runtime.files.currentTime());
    const attributes = { ...inode.attributes, mtime: formatTime(mtime) };
    metadata.inodes.update(inode.id, { size, attributes, ctime: formatTime(ctime) });
    setInodeDirty(context, inode.id);
  };
  // Only a call that the kernel knows of makes a file longer, and by it the kernel forgets what it was told before.
  // Of any other change it is told, unless it was shown that: it may have been made through a mapping.
  const isShown =
    size === live.changes.shownSize &&
    live.changes.shownTime !== undefined &&
    compareTimes(mtime, live.changes.shownTime) === 0;
  if (isLongerThanShown(size, live.changes.shownSize) || isShown) byKernelRequest(context, record, live.lineage);
  else metadata.changed.ours(() => metadata.transaction(record));
  runtime.step("write: size and time recorded");
  live.changes.hasUnpersistedStat = false;
}

/** Open writable handles of the inode. */
export function writersOf(context: Pick<LocalFiles, "cacheFiles">, inode: Inode): number {
  return context.cacheFiles.get(inode.lineage)?.use.writers ?? 0;
}

/** Once somebody has written to it, or may have, the file itself knows its size and time; else undefined. */
export async function cacheFileStat(
  context: Rows & LocalFiles,
  inode: Inode,
): Promise<{ size: number; mtime: Time } | undefined> {
  const live = context.cacheFiles.get(inode.lineage);
  if (live === undefined || live.use.writers === 0) return undefined;
  const stat = await statAsKnown(live);
  const {
    passthrough: { lastStat, isLastStatExact },
  } = live;
  const isAsNoticed = lastStat === undefined || (isLastStatExact && isSameStat(lastStat, stat));
  // Merely open: a time that somebody set elsewhere is in the rows alone.
  const isUnwritten = isAsNoticed && context.metadata.inodes.get(inode.id)?.content === "open";
  return isUnwritten ? undefined : stat;
}

/**
 * A program set the time; the row is the caller's. The file gets it too if it is, or after a crash
 * would be, asked for its time: while somebody can write to it, and while its content is only here.
 */
export async function setCacheFileTimes(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  inode: Inode,
  mtime: Time,
): Promise<void> {
  const { metadata, cacheFiles } = context;
  const isAsked = inode.content === "dirty" && metadata.lives.get(inode.lineage) !== undefined;
  if (!isAsked && (cacheFiles.get(inode.lineage)?.use.writers ?? 0) === 0) return;
  const live = await openCacheFile(context, inode.lineage, { write: false });
  try {
    const free = await live.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
    try {
      await live.disk.file.setTimes(mtime);
      // Who looked at the file before this must not say so to the rows after the caller.
      live.changes.timesSet += 1;
    } finally {
      free();
    }
  } catch (error) {
    throw fromDisk(error, "the time could not be set");
  } finally {
    await closeCacheFile(context, live, { write: false });
  }
}

/** The bytes and rows of a lineage nobody can reach any more. Not while it is open or being sent. */
export function dropKernelNodeId(context: Rows & LocalFiles & Host, lineage: Lineage): void {
  const { metadata, runtime, cacheFiles } = context;
  if (cacheFiles.has(lineage) || metadata.generations.ofLineage(lineage).length > 0) return;
  const hasFile = metadata.lives.get(lineage) !== undefined;
  metadata.transaction(() => {
    if (hasFile) metadata.lives.remove(lineage);
    metadata.inodes.removeLineage(lineage);
    if (hasFile) removeSoon(context, { kind: "live", id: lineage });
  });
  context.fileState.unreadable.delete(lineage);
  runtime.step("forget: rows gone");
}

/** Makes the file's name survive power loss, once. */
export async function syncName(context: Host, live: CacheFile): Promise<void> {
  if (!live.disk.isNew) return;
  await context.runtime.files.syncFolder(dirname(live.path));
  live.disk.isNew = false;
}

/** An answer tells the kernel this size, and this time if it is about nothing else. */
export function shown({ changes }: CacheFile, size: number, time?: Time): void {
  changes.shownSize = size;
  changes.shownTime = time;
}
