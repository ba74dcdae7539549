/**
 * Live files: opened, shared by every open of a lineage, closed. The row says what may be on disk
 * before the file does, and the inode says "open" before a writer can write, so that a crash at any
 * point leaves bytes that are looked at, never bytes that are taken for clean.
 */
import { dirname } from "node:path";
import { type FileStat, isSameStat } from "../../lib/files.ts";
import { compareTimes, formatTime, type Time } from "../../lib/time.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
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

/** Counts as one open until closeCacheFile. A writable one has marked the inode durably before this resolves. */
export async function openCacheFile(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  lineage: KernelNodeId,
  options: {
    write: boolean;
    /** Its row was made with the inode's, and there is no file yet. */
    isNew?: boolean;
    /** False: to be sent, which is no reason to keep it here for longer. */
    isUse?: boolean;
  },
): Promise<CacheFile> {
  const cacheFile = await hold(context, lineage, options.isNew ?? false);
  cacheFile.use.isUsed ||= options.isUse ?? true;
  try {
    if (!cacheFile.disk.isKept) await haveFile(context, cacheFile, options.write);
    if (options.write) await becomeWriter(context, cacheFile);
    else requireCurrent(context, lineage);
    return cacheFile;
  } catch (error) {
    await closeCacheFile(context, cacheFile, { write: false });
    throw fromDisk(error, `live file ${lineage} cannot be opened`);
  }
}

/** A writer needs the file, and hears why there is none; a reader can do without. */
async function haveFile(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: CacheFile,
  isNeeded: boolean,
): Promise<void> {
  if (isNeeded) {
    await requireDisk(context);
    await regain(context, cacheFile);
  } else if (context.disk.trouble === undefined && context.disk.mayKeep) {
    await regain(context, cacheFile).catch((error: unknown) => context.disk.refused(error));
  }
}

async function hold(
  context: Rows & LocalFiles & Remote & Host,
  lineage: KernelNodeId,
  isNew: boolean,
): Promise<CacheFile> {
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
async function becomeWriter(context: Rows & LocalFiles & Remote & Uploads & Host, cacheFile: CacheFile): Promise<void> {
  const { metadata } = context;
  for (;;) {
    const inode = requireCurrent(context, cacheFile.lineage);
    const isFree = metadata.snapshots.ofKernelNodeId(cacheFile.lineage).length === 0;
    const isPrepared = cacheFile.use.writers > 0 || cacheFile.use.preparedTime === formatTime(mtimeOf(context, inode));
    if (isFree && isPrepared) {
      metadata.transaction(() => {
        if (cacheFile.use.writers === 0) metadata.writers.begin(inode.id);
        if (inode.content === "clean") metadata.inodes.update(inode.id, { content: "open" });
      });
      if (cacheFile.use.writers === 0) {
        cacheFile.changes.isContentDirty = isUncut(inode);
        // What is uncut has its pause from here on.
        cacheFile.changes.lastWriteAt = context.runtime.elapsed();
        // While nobody wrote, the kernel was told what the rows have, which may be older than the file.
        cacheFile.changes.shownSize =
          cacheFile.changes.hasUnpersistedStat || inode.content === "open" ? "unknown" : inode.size;
      }
      // Since a writer before this one: what it did could not be told to the rows.
      if (cacheFile.use.writers === 0 && inode.content === "open") setContentDirty(context, cacheFile);
      cacheFile.use.writers += 1;
      cacheFile.use.writersAdmitted += 1;
      context.runtime.step("open: marked");
      return;
    }
    cacheFile.use.preparing ??= prepareForWriter(context, cacheFile).finally(() => {
      cacheFile.use.preparing = undefined;
    });
    await cacheFile.use.preparing;
  }
}

async function prepareForWriter(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
): Promise<void> {
  await cancelForWriter(context, cacheFile.lineage);
  if (cacheFile.use.writers > 0) return;
  // From here on bytes that are fetched leave the times alone; those on their way are waited for.
  cacheFile.use.keepsTimes = true;
  const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    if (cacheFile.use.writers > 0) return;
    const mtime = mtimeOf(context, requireCurrent(context, cacheFile.lineage));
    await cacheFile.disk.file.setTimes(mtime);
    context.runtime.step("open: time set");
    cacheFile.use.preparedTime = formatTime(mtime);
  } finally {
    free();
  }
}

/** Ends one open. The last writer leaves size, times and state in the rows. Never rejects: the program has gone on. */
export async function closeCacheFile(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
  options: { write: boolean },
): Promise<void> {
  if (options.write) {
    // Until the rows are true, the file is asked: the writer counts until then. Again where another one was
    // let in meanwhile, who may have gone since.
    for (let isBehind = mayHaveUnpersistedStat(cacheFile); cacheFile.use.writers === 1 && isBehind; ) {
      const {
        use: { writersAdmitted },
      } = cacheFile;
      if (await logged(context, cacheFile, () => rowsFromFile(context, cacheFile))) {
        isBehind = cacheFile.changes.hasUnpersistedStat || cacheFile.use.writersAdmitted !== writersAdmitted;
      } else {
        // What he did nobody knows: no cut that is under way may count, and what was synced is not all there is.
        cacheFile.changes.hasUnpersistedStat = true;
        cacheFile.changes.writes += 1;
        cacheFile.passthrough.durableStat = undefined;
        break;
      }
    }
    cacheFile.use.writers -= 1;
    if (cacheFile.use.writers === 0) await logged(context, cacheFile, async () => writersLeft(context, cacheFile));
    context.activity.progressed();
  }
  cacheFile.use.opens -= 1;
  if (cacheFile.use.opens > 0) return;
  await logged(context, cacheFile, () => alone(context, cacheFile.lineage, () => closeFile(context, cacheFile)));
}

/** Whether it went well. */
async function logged(context: Host, cacheFile: CacheFile, work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    context.log.error({ err: error, inode: cacheFile.inode, lineage: cacheFile.lineage }, "closing a live file failed");
    return false;
  }
}

function writersLeft(context: Rows & LocalFiles & Remote & Uploads & Host, cacheFile: CacheFile): void {
  const { metadata } = context;
  const {
    passthrough: { lastStat, durableStat },
  } = cacheFile;
  cacheFile.use.preparedTime = undefined;
  cacheFile.pacing.snapshotTimer?.cancel();
  cacheFile.pacing.snapshotTimer = undefined;
  // A copy of the open file could not be made: that is no longer what is needed.
  context.fileState.unreadable.delete(cacheFile.lineage);
  const wasSynced = lastStat !== undefined && durableStat !== undefined && isSameStat(lastStat, durableStat);
  metadata.transaction(() => {
    const inode = metadata.inodes.get(cacheFile.inode);
    if (inode === undefined || inode.lineage !== cacheFile.lineage) return;
    if (inode.content === "open" && !cacheFile.changes.hasUnpersistedStat) {
      // Opened for writing, and nothing was written.
      metadata.inodes.update(inode.id, { content: "clean" });
      if (lastStat !== undefined) logClean(context, inode.lineage);
    }
    if (wasSynced && inode.content === "dirty") metadata.inodes.update(inode.id, { synced: 1 });
    if (cacheFile.changes.firstWriteAt !== undefined) {
      setInodeDirty(context, inode.id);
      yieldToNewer(context, inode.id);
    } else enqueueAfterQuiet(context, inode.id);
    if (metadata.detachedFiles.get(inode.id) !== undefined) context.activity.wake();
  });
  // What the rows could not be told is found out after a crash, or at the next close. The mark is of the inode: of a
  // version that was replaced it is left to who writes to the one that came.
  const inode = metadata.inodes.get(cacheFile.inode);
  if (!cacheFile.changes.hasUnpersistedStat && (inode === undefined || writersOf(context, inode) === 0))
    metadata.writers.end(cacheFile.inode);
  cacheFile.changes.firstWriteAt = undefined;
  cacheFile.passthrough.lastStat = undefined;
  cacheFile.passthrough.durableStat = undefined;
  if (wasSynced) {
    // Nobody can change it any more without our being asked.
    cacheFile.changes.isDurable = true;
    inBackground(context, "syncing the rows of a closed file", () => context.syncRows());
  }
  context.runtime.step("release: no writer left");
}

async function closeFile(context: Rows & LocalFiles & Remote & Host, cacheFile: CacheFile): Promise<void> {
  const { metadata, cacheFiles, fileState, runtime } = context;
  // Somebody opened it while this waited for its turn.
  if (cacheFile.use.opens > 0) return;
  for (const download of cacheFile.ranges.downloads) download.controller.abort();
  await Promise.all([...cacheFile.ranges.downloads].map((download) => download.done));
  // Whoever asked for its size and time while it was open has his answer first.
  const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    const isRemembered = cacheFile.disk.isKept && context.disk.trouble !== "readOnly";
    if (isRemembered) await recordArrived(context, cacheFile);
    const { size, allocated } = await cacheFile.disk.file.stat();
    const row = isRemembered ? metadata.cacheFiles.get(cacheFile.lineage) : undefined;
    const isUseKnown = !cacheFile.use.isUsed || (row !== undefined && Math.abs(runtime.now() - row.usedAt) < USED_MS);
    const isKnown = row?.size === size && row.bytes === allocated && isUseKnown;
    if (row !== undefined && !isKnown) {
      const usedAt = isUseKnown ? row.usedAt : runtime.now();
      metadata.transaction(() => metadata.cacheFiles.update(cacheFile.lineage, { size, bytes: allocated, usedAt }));
    }
    runtime.step("release: recorded");
  } finally {
    free();
    fileState.uncachedReaders.delete(cacheFile);
    await Promise.all([cacheFile.disk.file, ...cacheFile.disk.former].map((file) => file.close())).finally(() =>
      cacheFiles.delete(cacheFile.lineage),
    );
    const then = fileState.afterClose.get(cacheFile.lineage);
    fileState.afterClose.delete(cacheFile.lineage);
    then?.();
    evictSoon(context);
  }
}

/** Size and mtime of a file that was written, from the file to the rows. */
export async function rowsFromFile(context: Rows & LocalFiles & Uploads & Host, cacheFile: CacheFile): Promise<void> {
  // What passed writers do after this look is another change, which the next look finds.
  let look = await detectWrites(context, cacheFile);
  while (cacheFile.changes.hasUnpersistedStat) {
    revokeWriteLeases(context, cacheFile);
    look ??= await lookNow(cacheFile);
    if (isAsSeen(cacheFile, look)) return recordStat(context, cacheFile, look.stat);
    // Changed while it was looked at; while others write, the file is asked anyway.
    if (cacheFile.use.writers > 1 || cacheFile.changes.inFlight > 0) return;
    look = undefined;
  }
}

async function lookNow(cacheFile: CacheFile): Promise<Look> {
  const {
    changes: { writes, inFlight, timesSet },
  } = cacheFile;
  return { stat: await statAsKnown(cacheFile), writes, inFlight, timesSet };
}

/** As programs know it: while bytes of the origin are put into the file, it has a time that is taken back (fetch.ts). */
async function statAsKnown(cacheFile: CacheFile): Promise<FileStat> {
  if (cacheFile.ranges.missing.length === 0) return cacheFile.disk.file.stat();
  const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    return await cacheFile.disk.file.stat();
  } finally {
    free();
  }
}

/** Nobody was changing it when it was looked at, and nobody has since. What somebody else has found out by a later look counts as a change. */
function isAsSeen(cacheFile: CacheFile, { writes, inFlight, timesSet }: Look): boolean {
  return inFlight === 0 && cacheFile.changes.writes === writes && cacheFile.changes.timesSet === timesSet;
}

function recordStat(context: Rows & Uploads & Host, cacheFile: CacheFile, { size, allocated, mtime }: FileStat): void {
  const { metadata, runtime } = context;
  const record = () => {
    metadata.cacheFiles.update(cacheFile.lineage, { size, bytes: allocated });
    const inode = metadata.inodes.get(cacheFile.inode);
    if (inode === undefined || inode.lineage !== cacheFile.lineage) return;
    const ctime = ctimeOf(inode, mtimeOf(context, inode), mtime, runtime.files.currentTime());
    const attributes = { ...inode.attributes, mtime: formatTime(mtime) };
    metadata.inodes.update(inode.id, { size, attributes, ctime: formatTime(ctime) });
    setInodeDirty(context, inode.id);
  };
  // Only a call that the kernel knows of makes a file longer, and by it the kernel forgets what it was told before.
  // Of any other change it is told, unless it was shown that: it may have been made through a mapping.
  const isShown =
    size === cacheFile.changes.shownSize &&
    cacheFile.changes.shownTime !== undefined &&
    compareTimes(mtime, cacheFile.changes.shownTime) === 0;
  if (isLongerThanShown(size, cacheFile.changes.shownSize) || isShown)
    byKernelRequest(context, record, cacheFile.lineage);
  else metadata.changed.ours(() => metadata.transaction(record));
  runtime.step("write: size and time recorded");
  cacheFile.changes.hasUnpersistedStat = false;
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
  const cacheFile = context.cacheFiles.get(inode.lineage);
  if (cacheFile === undefined || cacheFile.use.writers === 0) return undefined;
  const stat = await statAsKnown(cacheFile);
  const {
    passthrough: { lastStat, isLastStatExact },
  } = cacheFile;
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
  const isAsked = inode.content === "dirty" && metadata.cacheFiles.get(inode.lineage) !== undefined;
  if (!isAsked && (cacheFiles.get(inode.lineage)?.use.writers ?? 0) === 0) return;
  const cacheFile = await openCacheFile(context, inode.lineage, { write: false });
  try {
    const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
    try {
      await cacheFile.disk.file.setTimes(mtime);
      // Who looked at the file before this must not say so to the rows after the caller.
      cacheFile.changes.timesSet += 1;
    } finally {
      free();
    }
  } catch (error) {
    throw fromDisk(error, "the time could not be set");
  } finally {
    await closeCacheFile(context, cacheFile, { write: false });
  }
}

/** The bytes and rows of a lineage nobody can reach any more. Not while it is open or being sent. */
export function dropKernelNodeId(context: Rows & LocalFiles & Host, lineage: KernelNodeId): void {
  const { metadata, runtime, cacheFiles } = context;
  if (cacheFiles.has(lineage) || metadata.snapshots.ofKernelNodeId(lineage).length > 0) return;
  const hasFile = metadata.cacheFiles.get(lineage) !== undefined;
  metadata.transaction(() => {
    if (hasFile) metadata.cacheFiles.remove(lineage);
    metadata.inodes.removeKernelNodeId(lineage);
    if (hasFile) removeSoon(context, { kind: "live", id: lineage });
  });
  context.fileState.unreadable.delete(lineage);
  runtime.step("forget: rows gone");
}

/** Makes the file's name survive power loss, once. */
export async function syncName(context: Host, cacheFile: CacheFile): Promise<void> {
  if (!cacheFile.disk.isNew) return;
  await context.runtime.files.syncFolder(dirname(cacheFile.path));
  cacheFile.disk.isNew = false;
}

/** An answer tells the kernel this size, and this time if it is about nothing else. */
export function shown({ changes }: CacheFile, size: number, time?: Time): void {
  changes.shownSize = size;
  changes.shownTime = time;
}
