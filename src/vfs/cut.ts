/** Generations: finished cuts of a live file, synced and hashed, which is what is uploaded. */
import { compareTimes } from "../lib/time.ts";
import type { Inode } from "../metadata/inodes.ts";
import type { Context } from "./context.ts";
import { makeWhole } from "./fetch.ts";
import { dropGeneration } from "./generation.ts";
import type { LiveFile } from "./live-file.ts";
import { EMPTY_HASH, nowText } from "./stat.ts";

/** cut: its hash is known and its bytes can be sent. clean: it turned out to be a known version. busy: written meanwhile. */
export type CutResult = "cut" | "clean" | "busy";

export async function cutGeneration(context: Context, inodeId: number, signal: AbortSignal): Promise<CutResult> {
  const { metadata } = context;
  const inode = metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind !== "file") return "clean";
  if (inode.content === "clean") return "clean";
  const live = context.lives.get(inode.lineage);
  if (live !== undefined && live.writers > 0) return cutWhileOpen(context, inode, live, signal);
  if (metadata.lives.get(inode.lineage) === undefined) {
    if (inode.size > 0) throw new Error(`inode ${inode.id} has ${inode.size} bytes and no live file`);
    metadata.inodes.update(inode.id, { hash: EMPTY_HASH, content: "dirty" });
    return "cut";
  }
  return cutLiveItself(context, inode, signal);
}

/** Nobody can write to it: the live file itself is the cut. */
async function cutLiveItself(context: Context, inode: Inode, signal: AbortSignal): Promise<CutResult> {
  const { runtime, paths } = context;
  const path = paths.live(inode.lineage);
  await makeWhole(context, inode, signal);
  await syncFile(context, path);
  const { hash, size } = await runtime.files.hash(path, signal);
  return settleCut(context, inode, { hash, size, lineage: inode.lineage, isStill: () => !hasWriter(context, inode) });
}

/** A writer has it open: a copy counts only if nothing changed while it was made. */
async function cutWhileOpen(context: Context, inode: Inode, live: LiveFile, signal: AbortSignal): Promise<CutResult> {
  const { runtime, paths, metadata } = context;
  await makeWhole(context, inode, signal);
  const writes = live.writes;
  const before = await live.file.stat();
  await live.file.sync();
  const id = metadata.generations.reserveId();
  const path = paths.generation(id);
  await paths.prepareFolderOf(path);
  try {
    await runtime.files.clone(paths.live(inode.lineage), path);
    const after = await live.file.stat();
    const isSame =
      before.size === after.size &&
      compareTimes(before.mtime, after.mtime) === 0 &&
      compareTimes(before.ctime, after.ctime) === 0;
    if (!isSame || live.writes !== writes) return "busy";
    await syncFile(context, path);
    await paths.syncFolderOf(path);
    const { hash, size } = await runtime.files.hash(path, signal);
    const result = settleCut(context, inode, { id, hash, size, lineage: null, isStill: () => live.writes === writes });
    if (result !== "busy") {
      live.isWritten = false;
      live.isSyncAsked = false;
      context.cuts.set(inode.id, runtime.now());
    }
    return result;
  } finally {
    if (metadata.generations.get(id) === undefined) await runtime.files.remove(path);
  }
}

async function syncFile(context: Context, path: string): Promise<void> {
  const file = await context.runtime.files.open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function hasWriter(context: Context, inode: Inode): boolean {
  return (context.lives.get(inode.lineage)?.writers ?? 0) > 0;
}

interface Cut {
  readonly id?: number;
  readonly hash: string;
  readonly size: number;
  readonly lineage: number | null;
  readonly isStill: () => boolean;
}

/** The inode is read again: only a cut of its newest content counts. */
function settleCut(context: Context, before: Inode, cut: Cut): CutResult {
  const { metadata, settings } = context;
  return metadata.transaction((): CutResult => {
    const inode = metadata.inodes.get(before.id);
    const isSame = inode !== undefined && inode.changes === before.changes && inode.lineage === before.lineage;
    if (inode === undefined || !isSame || !cut.isStill()) return "busy";
    for (const old of metadata.generations.unusedOf(inode.id)) dropGeneration(context, old.id);
    const { hash, size } = cut;
    if (isOriginHash(context, inode, hash)) {
      const content = hasWriter(context, inode) ? "open" : "clean";
      metadata.inodes.update(inode.id, { hash, size, content });
      return "clean";
    }
    const mtime = inode.attributes.mtime ?? nowText(context);
    const common = { inode: inode.id, changes: inode.changes, lineage: cut.lineage, size, hash, mtime };
    const id = cut.id === undefined ? {} : { id: cut.id };
    if (size > 0) metadata.generations.create({ ...common, ...id, synced: 1, boot: settings.boot });
    metadata.inodes.update(inode.id, { hash, size, content: "dirty" });
    return "cut";
  });
}

/** The bytes are those of the version it grew from: nothing was changed after all. */
function isOriginHash(context: Context, inode: Inode, hash: string): boolean {
  if (inode.originVersion === null) return false;
  return context.metadata.entries.ofInode(inode.id).some((entry) => {
    const base = context.metadata.nodes.ofEntry(entry.id)?.base;
    return base?.head === inode.originVersion && base.hash === hash;
  });
}
