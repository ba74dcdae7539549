/**
 * After a crash, before anything is served: every file a writer may have changed is looked at, and
 * what belongs to nobody is set aside, never removed unless it is empty.
 */
import { hasCode } from "../lib/system-error.ts";
import { formatTime } from "../lib/time.ts";
import type { Inode } from "../metadata/inodes.ts";
import { markInode } from "./changes.ts";
import type { Context } from "./context.ts";
import { dropGeneration } from "./generation.ts";
import { forgetLineage } from "./live.ts";
import { removeInode } from "./nameless.ts";

export async function recoverContents(context: Context): Promise<void> {
  const { metadata } = context;
  for (const inode of metadata.inodes.unfinished()) await recoverInode(context, inode);
  await recoverGenerations(context);
  for (const lineage of metadata.inodes.superseded()) forgetLineage(context, lineage);
  for (const inode of metadata.inodes.nameless()) {
    for (const generation of metadata.generations.unusedOf(inode.id)) dropGeneration(context, generation.id);
    removeInode(context, inode);
  }
  await setOrphansAside(context);
}

/** Size and time are the file's; whether its content changed is found out when it is cut and hashed. */
async function recoverInode(context: Context, inode: Inode): Promise<void> {
  const { metadata, runtime, paths } = context;
  if (inode.content === "open") {
    // Opened for writing; the row says dirty before the first byte changes, so nothing did.
    metadata.inodes.update(inode.id, { content: "clean" });
    return;
  }
  if (metadata.lives.get(inode.lineage) === undefined) return;
  try {
    const stat = await runtime.files.stat(paths.live(inode.lineage));
    metadata.transaction(() => {
      const mtime = formatTime(stat.mtime);
      if (stat.size === inode.size && mtime === inode.attributes.mtime) return;
      const attributes = { ...inode.attributes, mtime };
      metadata.inodes.update(inode.id, { size: stat.size, attributes, changes: inode.changes + 1 });
      metadata.lives.update(inode.lineage, { size: stat.size, bytes: stat.allocated });
      markInode(context, inode.id);
    });
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    context.log.error({ inode: inode.id, content: inode.content }, "the local file of a changed inode is missing");
    metadata.lives.remove(inode.lineage);
    if (inode.originVersion !== null) metadata.inodes.update(inode.id, { content: "clean" });
  }
}

/** A cut without its file cannot be sent; a cut of the live file that has moved on is none. */
async function recoverGenerations(context: Context): Promise<void> {
  const { metadata, runtime, paths } = context;
  for (const generation of metadata.generations.all()) {
    const inode = metadata.inodes.get(generation.inode);
    const isStale = generation.lineage !== null && inode?.changes !== generation.changes;
    const path = generation.lineage === null ? paths.generation(generation.id) : paths.live(generation.lineage);
    if (!isStale && (await exists(context, path))) continue;
    const attempt = metadata.attempts.ofGeneration(generation.id);
    metadata.transaction(() => {
      if (attempt !== undefined) metadata.attempts.abandon(attempt.id);
      dropGeneration(context, generation.id);
      if (inode !== undefined && inode.changes === generation.changes) {
        metadata.inodes.update(inode.id, { changes: inode.changes + 1, hash: null });
        markInode(context, inode.id);
      }
    });
  }
  async function exists(_context: Context, path: string): Promise<boolean> {
    try {
      await runtime.files.stat(path);
      return true;
    } catch (error) {
      if (hasCode(error, "ENOENT")) return false;
      throw error;
    }
  }
}

/** Files without a row. */
async function setOrphansAside(context: Context): Promise<void> {
  const { metadata, paths } = context;
  for await (const lineage of paths.liveFiles()) {
    if (metadata.lives.get(lineage) === undefined) await setAside(context, paths.live(lineage), `live-${lineage}`);
  }
  for await (const id of paths.generationFiles()) {
    if (metadata.generations.get(id) === undefined) await setAside(context, paths.generation(id), `generation-${id}`);
  }
}

async function setAside(context: Context, path: string, name: string): Promise<void> {
  const { runtime, paths, log } = context;
  const { allocated } = await runtime.files.stat(path);
  if (allocated === 0) return runtime.files.remove(path);
  const target = await paths.quarantine(path, name);
  log.warn({ path: target }, "a local file that belongs to nothing known was set aside");
}
