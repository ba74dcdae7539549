/**
 * Cache files: opened, shared by every open of a kernel node id, closed. The row of a file exists before the file does,
 * and the inode says "open" before a writer can write. So after a crash at any point, written bytes are looked at and
 * never taken for clean.
 */
import { dirname } from "node:path";
import { minus } from "../../lib/clocks.ts";
import { type FileStat, isSameStat } from "../../lib/files.ts";
import { formatTime, type Time } from "../../lib/time.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { fromDisk } from "../api/index.ts";
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import { isContentDirty, openFile, openNewFile, regain, requireCurrent } from "./backing-file.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { cancelForWriter, yieldToNewer } from "./cancel-upload.ts";
import { logClean } from "./dirty-file-log.ts";
import { despiteFullDisk, requireDisk } from "./disk-room.ts";
import { evictSoon } from "./evict.ts";
import { removeSoon } from "./file-removal.ts";
import { alone } from "./file-state.ts";
import { revokeWriteLeases } from "./revoke-leases.ts";
import type { LocalFiles } from "./room.ts";
import { setContentDirty } from "./set-dirty.ts";
import { ctimeOf, mtimeOf } from "./times.ts";
import { detectWrites, type Look } from "./write-detection.ts";

/** Milliseconds. The time of the last use is no more exact than this, so that fewer rows are written. */
const USED_MS = 10_000;

/**
 * Opens a cache file. It counts as one open until closeCacheFile. With `write`, the inode is marked "open" in the rows
 * before this resolves. Rejects with an FsError: ESTALE when the kernel node id is superseded; with `write` also
 * ENOSPC, EROFS or EIO, as the state of the disk is; else as fromDisk says.
 */
export async function openCacheFile(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  kernelNodeId: KernelNodeId,
  options: {
    write: boolean;
    /** rowOfNewFile made the row together with the inode, and there is no file yet. */
    isNew?: boolean;
    /** False: the file is opened for an upload, which does not make it count as used in the cache. */
    isUse?: boolean;
  },
): Promise<OpenCacheFile> {
  const cacheFile = await hold(context, kernelNodeId, options.isNew ?? false);
  if (options.isUse ?? true) cacheFile.use.used();
  try {
    if (!cacheFile.disk.isKept) await haveFile(context, cacheFile, options.write);
    if (options.write) await becomeWriter(context, cacheFile);
    else requireCurrent(context, kernelNodeId);
    return cacheFile;
  } catch (error) {
    await closeCacheFile(context, cacheFile, { write: false });
    throw fromDisk(error, `cache file ${kernelNodeId} cannot be opened`);
  }
}

/**
 * Tries to get the real file in place of a stand-in. `isNeeded`: for a writer; rejects with the reason if that fails. A
 * reader can do without the file.
 */
async function haveFile(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
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
  kernelNodeId: KernelNodeId,
  isNew: boolean,
): Promise<OpenCacheFile> {
  const { cacheFiles, fileState, disk } = context;
  let isUntried = isNew;
  for (let mayBeAbsent = disk.trouble !== undefined; ; ) {
    requireCurrent(context, kernelNodeId);
    const changing = fileState.changing.get(kernelNodeId);
    if (changing !== undefined) {
      await changing;
      continue;
    }
    const open = cacheFiles.get(kernelNodeId);
    if (open !== undefined) {
      open.use.open();
      return open;
    }
    const openAlone = () =>
      alone(context, kernelNodeId, async () => {
        const there = cacheFiles.get(kernelNodeId);
        if (there !== undefined) {
          there.use.open();
          return there;
        }
        // At a second try, the file may have been made and written to by another open.
        const isFirst = isUntried;
        isUntried = false;
        const made = isFirst
          ? await openNewFile(context, kernelNodeId)
          : await openFile(context, kernelNodeId, mayBeAbsent);
        cacheFiles.set(kernelNodeId, made);
        return made;
      });
    try {
      return await despiteFullDisk(context, 0, openAlone);
    } catch (error) {
      disk.refused(error);
      // Content that the gateway has can be read without the disk.
      if (mayBeAbsent || disk.mayKeep) throw fromDisk(error, `cache file ${kernelNodeId} cannot be opened`);
      mayBeAbsent = true;
    }
  }
}

/**
 * Admits a writer. In that moment no upload reads the file, its mtime is that of the row, and the inode is marked in
 * the rows. All of this must hold at once, so it is checked again after each wait.
 */
async function becomeWriter(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
): Promise<void> {
  const { metadata } = context;
  for (;;) {
    const inode = requireCurrent(context, cacheFile.kernelNodeId);
    const isFree = metadata.snapshots.ofKernelNodeId(cacheFile.kernelNodeId).length === 0;
    const isPrepared = cacheFile.use.writers > 0 || cacheFile.use.preparedTime === formatTime(mtimeOf(context, inode));
    if (isFree && isPrepared) {
      metadata.transaction(() => {
        if (cacheFile.use.writers === 0) metadata.writers.begin(inode.id);
        if (inode.content === "clean") metadata.inodes.update(inode.id, { content: "open" });
      });
      if (cacheFile.use.writers === 0) {
        const mayBeOlder = cacheFile.changes.hasUnpersistedStat || inode.content === "open";
        const size = mayBeOlder ? undefined : inode.size;
        cacheFile.changes.firstWriter(isContentDirty(inode), size, context.runtime.elapsed());
      }
      // "open" without a writer: the changes of an earlier writer could not be recorded, so the content counts as
      // dirty.
      if (cacheFile.use.writers === 0 && inode.content === "open") setContentDirty(context, cacheFile);
      cacheFile.use.admitWriter();
      context.runtime.step("open: marked");
      return;
    }
    await cacheFile.use.prepareOnce(() => prepareForWriter(context, cacheFile));
  }
}

async function prepareForWriter(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
): Promise<void> {
  await cancelForWriter(context, cacheFile.kernelNodeId);
  if (cacheFile.use.writers > 0) return;
  // The lock waits for fetches that are under way, which change the file's times.
  cacheFile.use.keepTimes();
  const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    if (cacheFile.use.writers > 0) return;
    const mtime = mtimeOf(context, requireCurrent(context, cacheFile.kernelNodeId));
    await cacheFile.disk.file.setTimes(mtime);
    context.runtime.step("open: time set");
    cacheFile.use.prepared(formatTime(mtime));
  } finally {
    free();
  }
}

/**
 * Ends one open. With the last writer, size, times and state are recorded in the rows. Never rejects, because the
 * program does not wait for it: failures are logged.
 */
export async function closeCacheFile(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  options: { write: boolean },
): Promise<void> {
  if (options.write) {
    // While a writer counts, size and time are read from the file. So this writer counts until the rows have them. The
    // loop goes on if another writer was admitted during the wait: it may have written and closed since.
    for (let isBehind = cacheFile.mayHaveUnpersistedStat; cacheFile.use.writers === 1 && isBehind; ) {
      const {
        use: { writersAdmitted },
      } = cacheFile;
      if (await logged(context, cacheFile, () => persistStat(context, cacheFile))) {
        isBehind = cacheFile.changes.hasUnpersistedStat || cacheFile.use.writersAdmitted !== writersAdmitted;
      } else {
        // The writes of this program are not known. So a snapshot under way must not count as the present content, and
        // neither does the last sync.
        cacheFile.changes.mayHaveChanged();
        cacheFile.passthrough.synced(undefined);
        break;
      }
    }
    cacheFile.use.writerLeft();
    if (cacheFile.use.writers === 0) await logged(context, cacheFile, async () => writersLeft(context, cacheFile));
    context.activity.progressed();
  }
  cacheFile.use.close();
  if (cacheFile.use.opens > 0) return;
  await logged(context, cacheFile, () => alone(context, cacheFile.kernelNodeId, () => closeFile(context, cacheFile)));
}

/** Runs `work` and logs its failure. True: there was none. */
async function logged(context: Host, cacheFile: OpenCacheFile, work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    context.log.error(
      { err: error, inode: cacheFile.inode, lineage: cacheFile.kernelNodeId },
      "closing a cache file failed",
    );
    return false;
  }
}

function writersLeft(context: Rows & LocalFiles & Remote & Uploads & Host, cacheFile: OpenCacheFile): void {
  const { metadata } = context;
  const {
    passthrough: { lastStat, durableStat },
  } = cacheFile;
  cacheFile.pacing.cancelLook();
  // A snapshot of the open file may have failed. Without a writer the next one needs no copy, so it gets new tries.
  context.fileState.unreadable.delete(cacheFile.kernelNodeId);
  const wasSynced = lastStat !== undefined && durableStat !== undefined && isSameStat(lastStat.stat, durableStat);
  metadata.transaction(() => {
    const inode = metadata.inodes.get(cacheFile.inode);
    if (inode === undefined || inode.kernelNodeId !== cacheFile.kernelNodeId) return;
    if (inode.content === "open" && !cacheFile.changes.hasUnpersistedStat) {
      // The file was opened for writing, and nothing was written.
      metadata.inodes.update(inode.id, { content: "clean" });
      if (lastStat !== undefined) logClean(context, inode.kernelNodeId);
    }
    if (wasSynced && inode.content === "dirty") metadata.inodes.update(inode.id, { synced: "durable" });
    if (cacheFile.changes.firstWriteAt !== undefined) {
      context.queue.setInodeDirty(inode.id);
      yieldToNewer(context, inode.id);
    } else context.queue.enqueueAfterQuiet(inode.id);
    if (metadata.detachedFiles.get(inode.id) !== undefined) context.activity.wake();
  });
  // If a change could not be recorded, the mark stays, so that the change is found after a crash or at the next close.
  // The mark belongs to the inode: if the inode has another cache file by now, the mark is left to the writers of that.
  const inode = metadata.inodes.get(cacheFile.inode);
  if (!cacheFile.changes.hasUnpersistedStat && (inode === undefined || context.cacheFiles.writersOf(inode) === 0))
    metadata.writers.end(cacheFile.inode);
  cacheFile.changes.noWriterLeft();
  cacheFile.passthrough.noWriterLeft();
  if (wasSynced) {
    // From here on the file cannot change without a new open.
    cacheFile.changes.setDurable(true);
    context.background("syncing the rows of a closed file", () => context.syncRows());
  }
  context.runtime.step("release: no writer left");
}

async function closeFile(context: Rows & LocalFiles & Remote & Host, cacheFile: OpenCacheFile): Promise<void> {
  const { metadata, cacheFiles, fileState, runtime } = context;
  // Another open came while this close waited for its turn.
  if (cacheFile.use.opens > 0) return;
  for (const download of cacheFile.ranges.downloads) download.abort();
  await Promise.all([...cacheFile.ranges.downloads].map((download) => download.done));
  cacheFile.ranges.stopHash();
  // Calls that read size and time while the file was open hold the lock until they are done.
  const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    const isRemembered = cacheFile.disk.isKept && context.disk.trouble !== "readOnly";
    if (isRemembered) await cacheFile.ranges.recordArrived(cacheFile.disk);
    const { size, allocated } = await cacheFile.disk.file.stat();
    const row = isRemembered ? metadata.cacheFiles.get(cacheFile.kernelNodeId) : undefined;
    const isUseKnown =
      !cacheFile.use.isUsed || (row !== undefined && Math.abs(minus(runtime.now(), row.usedAt)) < USED_MS);
    const isKnown = row?.size === size && row.bytes === allocated && isUseKnown;
    if (row !== undefined && !isKnown) {
      const usedAt = isUseKnown ? row.usedAt : runtime.now();
      metadata.transaction(() =>
        metadata.cacheFiles.update(cacheFile.kernelNodeId, { size, bytes: allocated, usedAt }),
      );
    }
    runtime.step("release: recorded");
  } finally {
    free();
    fileState.uncachedReaders.delete(cacheFile);
    await cacheFile.disk.close().finally(() => cacheFiles.delete(cacheFile.kernelNodeId));
    const then = fileState.afterClose.get(cacheFile.kernelNodeId);
    fileState.afterClose.delete(cacheFile.kernelNodeId);
    then?.();
    evictSoon(context);
  }
}

/**
 * Records size and mtime of a written file in the rows. Rejects with ESTALE, or with errors of the disk or the rows.
 */
export async function persistStat(context: Rows & LocalFiles & Kernel & Host, cacheFile: OpenCacheFile): Promise<void> {
  // A passthrough write after this look is another change, which the next look finds.
  let look = await detectWrites(context, cacheFile);
  while (cacheFile.changes.hasUnpersistedStat) {
    revokeWriteLeases(context, cacheFile);
    look ??= await lookNow(cacheFile);
    if (isUnchangedSince(cacheFile, look)) return recordStat(context, cacheFile, look.stat);
    // The file changed during the look. While there are other writes, size and time are read from the file anyway.
    if (cacheFile.use.writers > 1 || cacheFile.changes.inFlight > 0) return;
    look = undefined;
  }
}

async function lookNow(cacheFile: OpenCacheFile): Promise<Look> {
  const {
    changes: { writes, inFlight, timesSet },
  } = cacheFile;
  return { stat: await statAsKnown(cacheFile), writes, inFlight, timesSet };
}

/**
 * Stat of the file as programs should see it. While bytes of the origin are being written, the file has another mtime,
 * which is set back afterwards (fetch.ts).
 */
async function statAsKnown(cacheFile: OpenCacheFile): Promise<FileStat> {
  if (cacheFile.ranges.missing.length === 0) return cacheFile.disk.file.stat();
  const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
  try {
    return await cacheFile.disk.file.stat();
  } finally {
    free();
  }
}

/**
 * True: no change was under way at the look, and none has come since. A change that a later look has found counts as
 * one that came since.
 */
function isUnchangedSince(cacheFile: OpenCacheFile, { writes, inFlight, timesSet }: Look): boolean {
  return inFlight === 0 && cacheFile.changes.writes === writes && cacheFile.changes.timesSet === timesSet;
}

function recordStat(
  context: Rows & Kernel & Host,
  cacheFile: OpenCacheFile,
  { size, allocated, mtime }: FileStat,
): void {
  const { metadata, runtime } = context;
  const record = () => {
    metadata.cacheFiles.update(cacheFile.kernelNodeId, { size, bytes: allocated });
    const inode = metadata.inodes.get(cacheFile.inode);
    if (inode === undefined || inode.kernelNodeId !== cacheFile.kernelNodeId) return;
    const ctime = ctimeOf(inode, mtimeOf(context, inode), mtime, runtime.files.currentTime());
    const attributes = { ...inode.attributes, mtime: formatTime(mtime) };
    metadata.inodes.update(inode.id, { size, attributes, ctime: formatTime(ctime) });
    context.queue.setInodeDirty(inode.id);
  };
  // The kernel need not be told in two cases. The file is longer: only a call through the kernel makes a file longer,
  // and the kernel then drops the size that it knew. Or the kernel was shown just this size and time. Any other change
  // may have been made through a mapping, so the kernel is told.
  if (cacheFile.changes.isLongerThanShown(size) || cacheFile.changes.isShown(size, mtime))
    context.kernel.byRequest(record, cacheFile.kernelNodeId);
  else metadata.changed.ours(() => metadata.transaction(record));
  runtime.step("write: size and time recorded");
  cacheFile.changes.statIsPersisted();
}

/**
 * Size in bytes and mtime from the file itself, if a program has or may have written to it. Undefined: those in the
 * rows count. Rejects with the disk's error.
 */
export async function cacheFileStat(
  context: Rows & LocalFiles,
  inode: Inode,
): Promise<{ size: number; mtime: Time } | undefined> {
  const cacheFile = context.cacheFiles.get(inode.kernelNodeId);
  if (cacheFile === undefined || cacheFile.use.writers === 0) return undefined;
  const stat = await statAsKnown(cacheFile);
  const { lastStat } = cacheFile.passthrough;
  const isAsNoticed = lastStat === undefined || (lastStat.isExact && isSameStat(lastStat.stat, stat));
  // Nothing was written: a time that was set remotely is in the rows alone.
  const isUnwritten = isAsNoticed && context.metadata.inodes.get(inode.id)?.content === "open";
  return isUnwritten ? undefined : stat;
}

/**
 * A program set the mtime; the caller changes the row. The file gets it too when its own mtime counts, or would count
 * after a crash: while the file has a writer, and while its content is dirty. Rejects with an FsError.
 */
export async function setCacheFileTimes(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  inode: Inode,
  mtime: Time,
): Promise<void> {
  const { metadata, cacheFiles } = context;
  const isAsked = inode.content === "dirty" && metadata.cacheFiles.get(inode.kernelNodeId) !== undefined;
  if (!isAsked && (cacheFiles.get(inode.kernelNodeId)?.use.writers ?? 0) === 0) return;
  const cacheFile = await openCacheFile(context, inode.kernelNodeId, { write: false });
  try {
    const free = await cacheFile.ranges.lock.hold(0, Number.POSITIVE_INFINITY);
    try {
      await cacheFile.disk.file.setTimes(mtime);
      // A look from before this must not overwrite the time that the caller sets in the rows.
      cacheFile.changes.timeWasSet();
    } finally {
      free();
    }
  } catch (error) {
    throw fromDisk(error, "the time could not be set");
  } finally {
    await closeCacheFile(context, cacheFile, { write: false });
  }
}

/**
 * Removes bytes and rows of a kernel node id that cannot be reached any more. Does nothing while its file is open or
 * being sent.
 */
export function dropKernelNodeId(context: Rows & LocalFiles & Host, kernelNodeId: KernelNodeId): void {
  const { metadata, runtime, cacheFiles } = context;
  if (cacheFiles.has(kernelNodeId) || metadata.snapshots.ofKernelNodeId(kernelNodeId).length > 0) return;
  const hasFile = metadata.cacheFiles.get(kernelNodeId) !== undefined;
  metadata.transaction(() => {
    if (hasFile) metadata.cacheFiles.remove(kernelNodeId);
    metadata.inodes.removeKernelNodeId(kernelNodeId);
    if (hasFile) removeSoon(context, { kind: "live", id: kernelNodeId });
  });
  context.fileState.unreadable.delete(kernelNodeId);
  runtime.step("forget: rows gone");
}

/** Makes the file's name durable, once. Rejects with the error of the disk. */
export async function syncName(context: Host, cacheFile: OpenCacheFile): Promise<void> {
  if (!cacheFile.disk.isNew) return;
  await context.runtime.files.syncFolder(dirname(cacheFile.path));
  cacheFile.disk.nameIsDurable();
}
