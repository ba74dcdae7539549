/**
 * After a crash, before anything is served: every file that was open for writing is looked at; when
 * the machine went down, every one whose content was not cut. Clean files are not read.
 */
import { clipRanges, formatRanges, NO_RANGES, parseRanges } from "../../lib/ranges.ts";
import { hasCode } from "../../lib/system-error.ts";
import { compareTimes, formatTime } from "../../lib/time.ts";
import type { CacheFileRow } from "../../metadata/cache-files.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Context, type Host, type LocalFiles, type Rows, setInodeDirty, type Uploads } from "../core/index.ts";
import { ctimeOf, hasNoWriter, isStill, leaveToDetachedWriters, logNames, mtimeOf } from "../files/index.ts";
import { distrustContents, resolveDetached, wentDown } from "../sync/index.ts";
import { bringBack } from "./restore-rows.ts";
import { type Resumed, resumeAllMapped, resumeHandles, writtenBy } from "./resume.ts";
import { prepareSweep } from "./sweep.ts";

/** Resolves when everything is as it should be. */
export async function recoverContents(context: Context): Promise<void> {
  await (await recoverOpenFiles(context))?.();
}

/**
 * What must be true before anything is served. It costs as much as was open, unless rows and files are
 * not equally new. What is left to do, if anything, may be done while the mount is used; see sweep.ts.
 */
export async function recoverOpenFiles(
  context: Context,
  resumed?: Resumed,
): Promise<(() => Promise<void>) | undefined> {
  const { inodes } = context.metadata;
  const needsCheck = wentDown(context);
  if (needsCheck) await distrustContents(context);
  const wasOlder = await bringBack(context, needsCheck);
  const inWriting = inodes.writing();
  const written = resumed === undefined ? new Set<KernelNodeId>() : writtenBy(resumed);
  const mapped = resumed === undefined ? [] : await mappedOf(context, inWriting, written);
  if (resumed === undefined) for (const { lineage } of inWriting) await leaveToDetachedWriters(context, lineage);
  for (const inode of needsCheck || wasOlder ? inodes.unfinished() : inWriting) {
    if (!wasOlder && (written.has(inode.lineage) || mapped.includes(inode.lineage))) continue;
    await recoverInode(context, inode);
    logNames(context, inode.id);
  }
  const { metadata } = context;
  metadata.transaction(() => {
    metadata.writers.endAll();
    // Their writers go on: the rows may be behind the files until those are closed.
    for (const { id, lineage } of inWriting) {
      if (written.has(lineage) || mapped.includes(lineage)) metadata.writers.begin(id);
    }
  });
  if (resumed !== undefined) await resumeHandles(context, resumed);
  await resumeAllMapped(context, mapped);
  resolveDetached(context);
  const sweep = prepareSweep(context, resumed !== undefined);
  if (!needsCheck && !wasOlder) return sweep;
  // What the rows say of a file may be about another one.
  await sweep();
  return undefined;
}

/** Files that no program has open for writing any more, and one may have mapped: the kernel wrote them by itself. */
async function mappedOf(
  context: LocalFiles & Host,
  inWriting: readonly Inode[],
  written: Set<KernelNodeId>,
): Promise<KernelNodeId[]> {
  const mapped: KernelNodeId[] = [];
  for (const { lineage } of inWriting) {
    if (!written.has(lineage) && !(await hasNoWriter(context, lineage))) mapped.push(lineage);
  }
  return mapped;
}

async function recoverInode(context: Rows & LocalFiles & Uploads & Host, inode: Inode): Promise<void> {
  const { metadata, runtime, paths } = context;
  // Its last writer has gone, or has a version that was replaced: the end of its mark was not noted yet.
  if (inode.content === "clean") return;
  // Unlinked while it was open: it goes.
  if (metadata.entries.links(inode.id) === 0 && metadata.detachedFiles.get(inode.id) === undefined) return;
  runtime.step("recover: a file a writer had");
  const row = metadata.cacheFiles.get(inode.lineage);
  try {
    if (inode.content !== "dirty") return await recoverOpen(context, inode, row);
    if (row === undefined) {
      if (inode.size > 0) context.log.error({ inode: inode.id }, "the only copy of changed content is not there");
      return;
    }
    if (inode.hash !== null && (await isStill(context, inode, inode.hash))) return;
    const stat = await runtime.files.stat(paths.cacheFile(inode.lineage));
    const missing = parseRanges(row.missing);
    metadata.transaction(() => {
      const clipped = (ranges: string) => formatRanges(clipRanges(parseRanges(ranges) ?? NO_RANGES, stat.size));
      metadata.cacheFiles.update(inode.lineage, {
        size: stat.size,
        bytes: stat.allocated,
        missing: missing === undefined ? row.missing : clipped(row.missing),
        unproven: clipped(row.unproven),
      });
      // The file's time is newer only where a writer was not closed; otherwise the row has had the last word.
      const known = mtimeOf(context, inode);
      const times = compareTimes(stat.mtime, known) > 0 && {
        attributes: { ...inode.attributes, mtime: formatTime(stat.mtime) },
        ctime: formatTime(ctimeOf(inode, known, stat.mtime, runtime.files.currentTime())),
      };
      metadata.inodes.update(inode.id, { size: stat.size, hash: null, ...times, changes: inode.changes + 1 });
      setInodeDirty(context, inode.id);
    });
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    if (inode.size === 0) return;
    context.log.error({ inode: inode.id, lineage: inode.lineage }, "the only copy of changed content is not there");
  }
}

/**
 * Opened for writing, and no write went through us: that would have said "dirty" first. A whole file
 * may have been written past us (passthrough): it is clean with its old hash only. A big one
 * counts as changed until the loop cuts it.
 */
async function recoverOpen(
  context: Rows & LocalFiles & Uploads & Host,
  inode: Inode,
  row: CacheFileRow | undefined,
): Promise<void> {
  const { metadata } = context;
  let isClean = !isWhole(row);
  if (!isClean && inode.hash !== null) isClean = await isStill(context, inode, inode.hash);
  metadata.transaction(() => {
    if (isClean) {
      metadata.inodes.update(inode.id, { content: "clean" });
    } else {
      metadata.inodes.update(inode.id, { content: "dirty", hash: null, changes: inode.changes + 1 });
      setInodeDirty(context, inode.id);
    }
  });
  const dirty = metadata.inodes.get(inode.id);
  if (!isClean && dirty !== undefined) await recoverInode(context, dirty);
}
