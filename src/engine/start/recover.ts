/**
 * Recovery, before anything is served. After a crash it checks every file that was open for writing. After the machine
 * went down, it checks every file with changed content. Clean files are not read.
 */
import { clipRanges, NO_RANGES } from "../../lib/ranges.ts";
import { hasCode } from "../../lib/system-error.ts";
import { compareTimes, formatTime } from "../../lib/time.ts";
import type { CacheFileRow } from "../../metadata/cache-files.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { bringBack, type Restored } from "./restore-rows.ts";
import { type Resumed, resumeAllMapped, resumeHandles, writtenBy } from "./resume.ts";
import { prepareSweep } from "./sweep.ts";

/** Resolves when everything is recovered, the sweep included. */
export async function recoverContents(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Sync & Incoming & Outgoing,
): Promise<void> {
  await (await recoverOpenFiles(context)).sweep?.();
}

/**
 * The part of recovery that must be done before anything is served. Its cost depends on the number of files that were
 * open, and on nothing else, unless the machine went down or the rows are older than the files. `sweep`, if any, does
 * the rest while the mount is used; see sweep.ts. Rejects when the disk or the database fails.
 */
export async function recoverOpenFiles(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Sync & Incoming & Outgoing,
  resumed?: Resumed,
): Promise<{ readonly restored: Restored | undefined; readonly sweep: (() => Promise<void>) | undefined }> {
  const { inodes } = context.metadata;
  const needsCheck = context.powerLoss.wentDown();
  if (needsCheck) await context.powerLoss.judgeContents();
  const restored = await bringBack(context, needsCheck);
  const wasOlder = restored !== undefined;
  const inWriting = inodes.writing();
  const written = resumed === undefined ? new Set<KernelNodeId>() : writtenBy(resumed);
  const mapped = resumed === undefined ? [] : await mappedOf(context, inWriting, written);
  if (resumed === undefined)
    for (const { kernelNodeId } of inWriting) await context.cacheFiles.leaveToDetachedWriters(kernelNodeId);
  for (const inode of needsCheck || wasOlder ? inodes.unfinished() : inWriting) {
    if (!wasOlder && (written.has(inode.kernelNodeId) || mapped.includes(inode.kernelNodeId))) continue;
    await recoverInode(context, inode);
    context.dirtyFiles.named(inode.id);
  }
  const { metadata } = context;
  metadata.transaction(() => {
    metadata.writers.endAll();
    // The writers of these files go on. Until they close, the rows may be behind the files.
    for (const { id, kernelNodeId } of inWriting) {
      if (written.has(kernelNodeId) || mapped.includes(kernelNodeId)) metadata.writers.begin(id);
    }
  });
  if (resumed !== undefined) await resumeHandles(context, resumed);
  await resumeAllMapped(context, mapped);
  context.detachedFiles.resolve();
  const sweep = prepareSweep(context, { isResumed: resumed !== undefined, wasOlder });
  if (!needsCheck && !wasOlder) return { restored, sweep };
  // A row may be about another file than the one of its number. So nothing is served before the sweep has ended.
  await sweep();
  return { restored, sweep: undefined };
}

/** Files without an open writer that a program may still have mapped. The kernel writes to them by itself. */
async function mappedOf(
  context: LocalFiles,
  inWriting: readonly Inode[],
  written: Set<KernelNodeId>,
): Promise<KernelNodeId[]> {
  const mapped: KernelNodeId[] = [];
  for (const { kernelNodeId } of inWriting) {
    if (!written.has(kernelNodeId) && !(await context.cacheFiles.hasNoWriter(kernelNodeId))) mapped.push(kernelNodeId);
  }
  return mapped;
}

async function recoverInode(context: Rows & LocalFiles & Host, inode: Inode): Promise<void> {
  const { metadata, runtime, paths } = context;
  // The last writer is gone, or has a superseded version open. Only the end of its mark was not stored yet.
  if (inode.content === "clean") return;
  // The file was unlinked while it was open, and goes now.
  if (metadata.entries.links(inode.id) === 0 && metadata.detachedFiles.get(inode.id) === undefined) return;
  runtime.step("recover: a file a writer had");
  const row = metadata.cacheFiles.get(inode.kernelNodeId);
  try {
    if (inode.content !== "dirty") return await recoverOpen(context, inode, row);
    if (row === undefined) {
      if (inode.size > 0) context.log.error({ inode: inode.id }, "the only copy of changed content is not there");
      return;
    }
    if (inode.hash !== null && (await context.cacheFiles.isStill(inode, inode.hash))) return;
    const stat = await runtime.files.stat(paths.cacheFile(inode.kernelNodeId));
    const { missing, unverified = NO_RANGES } = row;
    metadata.transaction(() => {
      metadata.cacheFiles.update(inode.kernelNodeId, {
        size: stat.size,
        bytes: stat.allocated,
        ...(missing === undefined ? {} : { missing: clipRanges(missing, stat.size) }),
        unverified: clipRanges(unverified, stat.size),
      });
      // The file's time is newer than the row's only if a writer did not close the file. Otherwise the row's time
      // counts.
      const known = context.fileTimes.mtimeOf(inode);
      const times = compareTimes(stat.mtime, known) > 0 && {
        attributes: { ...inode.attributes, mtime: formatTime(stat.mtime) },
        ctime: formatTime(context.fileTimes.ctimeOf(inode, known, stat.mtime, runtime.files.currentTime())),
      };
      metadata.inodes.update(inode.id, { size: stat.size, hash: null, ...times, changes: inode.changes + 1 });
      context.queue.setInodeDirty(inode.id);
    });
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    if (inode.size === 0) return;
    context.log.error(
      { inode: inode.id, lineage: inode.kernelNodeId },
      "the only copy of changed content is not there",
    );
  }
}

/**
 * The file was open for writing. No write came through the daemon, because that would have set the file dirty first. A
 * passthrough writer may have written, if the file is whole: then it is clean only with its old hash. Without a known
 * hash it counts as changed until the write-back loop takes a snapshot.
 */
async function recoverOpen(
  context: Rows & LocalFiles & Host,
  inode: Inode,
  row: CacheFileRow | undefined,
): Promise<void> {
  const { metadata } = context;
  let isClean = !isWhole(row);
  if (!isClean && inode.hash !== null) isClean = await context.cacheFiles.isStill(inode, inode.hash);
  metadata.transaction(() => {
    if (isClean) {
      metadata.inodes.update(inode.id, { content: "clean" });
    } else {
      metadata.inodes.update(inode.id, { content: "dirty", hash: null, changes: inode.changes + 1 });
      context.queue.setInodeDirty(inode.id);
    }
  });
  const dirty = metadata.inodes.get(inode.id);
  if (!isClean && dirty !== undefined) await recoverInode(context, dirty);
}
