/**
 * After a crash, before anything is served: every file that was open for writing is looked at (when
 * the machine went down, every one whose content was not cut), and what belongs to nobody is set
 * aside, never removed unless it is empty. Clean files are not read.
 */
import { clipRanges, formatRanges, parseRanges } from "../lib/ranges.ts";
import { hasCode } from "../lib/system-error.ts";
import { compareTimes, formatTime } from "../lib/time.ts";
import type { Inode } from "../metadata/inodes.ts";
import type { LiveRow } from "../metadata/live-rows.ts";
import { bringBack } from "./bring-back.ts";
import { markInode } from "./changes.ts";
import type { Context } from "./context.ts";
import { leaveToFormerWriters } from "./former-writers.ts";
import { removeGeneration } from "./generation.ts";
import { removeLeft } from "./gone-files.ts";
import { forgetLineage } from "./live.ts";
import { mtimeOf } from "./mtime.ts";
import { removeInode } from "./nameless.ts";
import { doubtContents, wentDown } from "./power-loss.ts";
import { tellNamed } from "./staged-files.ts";
import { isStill } from "./still.ts";

export async function recoverContents(context: Context): Promise<void> {
  const { metadata } = context;
  const { inodes } = metadata;
  const isDoubtful = wentDown(context);
  if (isDoubtful) await doubtContents(context);
  const wasOlder = await bringBack(context, isDoubtful);
  for (const inode of isDoubtful || wasOlder ? inodes.unfinished() : inodes.writing()) {
    if (!isDoubtful) await leaveToFormerWriters(context, inode.lineage);
    await recoverInode(context, inode);
    tellNamed(context, inode.id);
  }
  inodes.endAllWriting();
  await recoverGenerations(context);
  for (const lineage of inodes.superseded()) forgetLineage(context, lineage);
  for (const inode of inodes.nameless()) {
    for (const generation of metadata.generations.unusedOf(inode.id)) removeGeneration(context, generation);
    if (metadata.entries.isEmpty(inode.id)) removeInode(context, inode);
  }
  // Files whose rows have just gone are ours to remove, not orphans.
  while (context.bytes.tasks.size > 0) await Promise.all(context.bytes.tasks);
  await removeLeft(context).catch((error: unknown) => {
    context.log.warn({ err: error }, "files nobody needs could not be removed yet");
  });
  await matchLiveFiles(context);
  await setGenerationsAside(context);
}

async function recoverInode(context: Context, inode: Inode): Promise<void> {
  const { metadata, runtime, paths } = context;
  // Unlinked while it was open: it goes.
  if (metadata.entries.links(inode.id) === 0) return;
  runtime.step("recover: a file a writer had");
  const row = metadata.lives.get(inode.lineage);
  try {
    if (inode.content !== "dirty") return await recoverOpen(context, inode, row);
    if (row === undefined) {
      if (inode.size > 0) context.log.error({ inode: inode.id }, "the only copy of changed content is not there");
      return;
    }
    if (inode.hash !== null && (await isStill(context, inode, inode.hash))) return;
    const stat = await runtime.files.stat(paths.live(inode.lineage));
    const missing = parseRanges(row.missing);
    metadata.transaction(() => {
      const clipped = missing === undefined ? row.missing : formatRanges(clipRanges(missing, stat.size));
      metadata.lives.update(inode.lineage, { size: stat.size, bytes: stat.allocated, missing: clipped });
      // The file's time is newer only where a writer was not closed; otherwise the row has had the last word.
      const isNewer = compareTimes(stat.mtime, mtimeOf(context, inode)) > 0;
      const attributes = isNewer ? { ...inode.attributes, mtime: formatTime(stat.mtime) } : inode.attributes;
      metadata.inodes.update(inode.id, { size: stat.size, hash: null, attributes, changes: inode.changes + 1 });
      markInode(context, inode.id);
    });
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    if (inode.size === 0) return;
    context.log.error({ inode: inode.id, lineage: inode.lineage }, "the only copy of changed content is not there");
  }
}

/**
 * Opened for writing, and no write went through us: that would have said "dirty" first. A whole file
 * may have been written past us (passthrough), so it is clean only with its old hash.
 */
async function recoverOpen(context: Context, inode: Inode, row: LiveRow | undefined): Promise<void> {
  const { metadata } = context;
  let isClean = row === undefined || row.missing !== "[]";
  if (!isClean && inode.hash !== null) isClean = await isStill(context, inode, inode.hash);
  metadata.transaction(() => {
    if (isClean) {
      metadata.inodes.update(inode.id, { content: "clean" });
    } else {
      metadata.inodes.update(inode.id, { content: "dirty", hash: null, changes: inode.changes + 1 });
      markInode(context, inode.id);
    }
  });
  const dirty = metadata.inodes.get(inode.id);
  if (!isClean && dirty !== undefined) await recoverInode(context, dirty);
}

/** A cut without its file cannot be sent; a cut of a live file that has moved on is none. */
async function recoverGenerations(context: Context): Promise<void> {
  const { metadata, paths } = context;
  for (const generation of metadata.generations.all()) {
    const inode = metadata.inodes.get(generation.inode);
    const isStale = generation.lineage !== null && inode?.changes !== generation.changes;
    const path = generation.lineage === null ? paths.generation(generation.id) : paths.live(generation.lineage);
    if (!isStale && (await exists(context, path))) continue;
    metadata.transaction(() => {
      const now = context.runtime.now();
      for (const { id } of metadata.attempts.ofGeneration(generation.id)) metadata.attempts.abandon(id, now);
      removeGeneration(context, generation);
      if (inode === undefined || inode.changes !== generation.changes || inode.content !== "dirty") return;
      metadata.inodes.update(inode.id, { changes: inode.changes + 1, hash: null });
      markInode(context, inode.id);
    });
  }
}

async function exists(context: Context, path: string): Promise<boolean> {
  try {
    await context.runtime.files.stat(path);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Live files without a row are set aside; rows without a file are forgotten where the gateway has the bytes. */
async function matchLiveFiles(context: Context): Promise<void> {
  const { metadata, paths } = context;
  const files = new Set<number>();
  for await (const lineage of paths.liveFiles()) files.add(lineage);
  for (const row of metadata.lives.all()) {
    const hasFile = files.delete(row.lineage);
    if (!hasFile && metadata.lives.isEvictable(row.lineage)) metadata.lives.remove(row.lineage);
    if (hasFile && row.bytes === 0) await countBytes(context, row);
  }
  for (const { kind, id } of metadata.gone.all()) if (kind === "live") files.delete(id);
  for (const lineage of files) await setAside(context, paths.live(lineage), `live-${lineage}`);
}

/** It was open, and nobody wrote down what came in: it takes space that nobody would ever take back. */
async function countBytes({ metadata, runtime, paths }: Context, { lineage }: LiveRow): Promise<void> {
  const { allocated } = await runtime.files.stat(paths.live(lineage));
  if (allocated > 0) metadata.lives.update(lineage, { bytes: allocated });
}

async function setGenerationsAside(context: Context): Promise<void> {
  const { metadata, paths, runtime } = context;
  for await (const id of paths.generationFiles()) {
    const generation = metadata.generations.get(id);
    if (generation?.lineage === null || metadata.gone.has({ kind: "generation", id })) continue;
    // One whose copy was not finished: the live file has the bytes.
    if (generation !== undefined) await runtime.files.remove(paths.generation(id));
    else await setAside(context, paths.generation(id), `generation-${id}`);
  }
}

async function setAside(context: Context, path: string, name: string): Promise<void> {
  const { runtime, paths, log } = context;
  const { allocated } = await runtime.files.stat(path);
  if (allocated === 0) return runtime.files.remove(path);
  const target = await paths.quarantine(path, name);
  log.warn({ path: target }, "a local file that belongs to nothing known was set aside");
}
