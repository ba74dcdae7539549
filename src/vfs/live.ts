/**
 * Live files: opened, shared by every open of a lineage, closed. The row says what may be on disk
 * before the file does, so that a crash at any point leaves bytes that are looked at, never bytes
 * that are taken for clean.
 */
import { formatRanges, NO_RANGES, parseRanges, rangeOf } from "../lib/ranges.ts";
import { hasCode } from "../lib/system-error.ts";
import { compareTimes, formatTime, parseTime, type Time } from "../lib/time.ts";
import type { Inode } from "../metadata/inodes.ts";
import { lookAfterQuiet, markInode } from "./changes.ts";
import type { Context } from "./context.ts";
import { FsError } from "./errors.ts";
import type { LiveFile } from "./live-file.ts";
import { freeForWriter } from "./uploads.ts";

/** A lineage whose inode has moved on takes no new opens: the kernel looks the name up again. */
function requireCurrent(context: Context, lineage: number): Inode {
  const inode = context.metadata.inodes.ofLineage(lineage);
  if (inode === undefined || inode.lineage !== lineage) throw new FsError("ESTALE", `lineage ${lineage} is superseded`);
  return inode;
}

/** Counts as one open until closeLive. A writable one has marked the inode durably before this resolves. */
export async function openLive(context: Context, lineage: number, options: { write: boolean }): Promise<LiveFile> {
  for (;;) {
    requireCurrent(context, lineage);
    if (options.write) await freeForWriter(context, lineage);
    const live = context.lives.get(lineage) ?? (await context.openings.run(lineage, () => openFile(context, lineage)));
    if (options.write && live.writers === 0) await showRowTimes(context, live);
    const inode = context.metadata.inodes.ofLineage(lineage);
    if (context.lives.get(lineage) !== live) continue;
    if (inode === undefined || inode.lineage !== lineage) {
      if (live.opens === 0) await closeFile(context, live);
      throw new FsError("ESTALE", `lineage ${lineage} is superseded`);
    }
    // Somebody cut it meanwhile, and may be sending the live file itself.
    if (options.write && context.metadata.generations.ofLineage(lineage).length > 0) continue;
    if (options.write && inode.content === "clean") context.metadata.inodes.update(inode.id, { content: "open" });
    live.opens += 1;
    if (options.write) live.writers += 1;
    return live;
  }
}

async function openFile(context: Context, lineage: number): Promise<LiveFile> {
  const { metadata, paths, runtime } = context;
  const inode = requireCurrent(context, lineage);
  const path = paths.live(lineage);
  const row = metadata.lives.get(lineage);
  let missing = row === undefined ? undefined : parseRanges(row.missing);
  let origin = originOf(row?.originNode ?? null, row?.originVersion ?? null);
  let file: LiveFile["file"];
  try {
    if (row === undefined) throw new FsError("ENOENT", "no live file yet");
    if (missing === undefined) throw new FsError("EIO", `the ranges of live file ${lineage} cannot be read`);
    file = await runtime.files.open(path, "r+");
  } catch (error) {
    const isNotThere = (error instanceof FsError && error.code === "ENOENT") || hasCode(error, "ENOENT");
    const hasBytesOnlyHere = inode.content !== "clean" && inode.size > 0;
    if (!isNotThere || hasBytesOnlyHere)
      throw new FsError("EIO", `live file ${lineage} cannot be opened`, { cause: error });
    origin = originOf(inode.originNode, inode.originVersion);
    missing = origin === undefined ? NO_RANGES : rangeOf(0, inode.size);
    file = await makeFile(context, path, inode.size);
    const usedAt = runtime.now();
    const made = {
      originNode: origin?.node ?? null,
      originVersion: origin?.version ?? null,
      size: inode.size,
      bytes: 0,
    };
    if (metadata.lives.get(lineage) !== undefined) metadata.lives.remove(lineage);
    metadata.lives.create({ lineage, ...made, missing: formatRanges(missing), usedAt });
  }
  const live: LiveFile = {
    lineage,
    inode: inode.id,
    file,
    origin,
    missing,
    opens: 0,
    writers: 0,
    isWritten: false,
    writes: 0,
    isNameSynced: false,
    writtenAt: 0,
    isSyncAsked: false,
    filling: Promise.resolve(),
    fetches: [],
    readEnd: 0,
    window: 0,
  };
  context.lives.set(lineage, live);
  return live;
}

async function makeFile(context: Context, path: string, size: number): Promise<LiveFile["file"]> {
  await context.paths.prepareFolderOf(path);
  const file = await context.runtime.files.open(path, "w+");
  if ((await file.stat()).size > 0) await file.truncate(0);
  if (size > 0) await file.truncate(size);
  return file;
}

function originOf(node: string | null, version: string | null): LiveFile["origin"] {
  return node === null || version === null ? undefined : { node, version };
}

/** While a writer has it open, the file's own times are the truth: they start as the row has them. */
async function showRowTimes(context: Context, live: LiveFile): Promise<void> {
  const text = context.metadata.inodes.get(live.inode)?.attributes.mtime;
  const mtime = text === undefined ? undefined : parseTime(text);
  if (mtime !== undefined) await live.file.setTimes(mtime);
}

/** Ends one open. The last writer leaves size, times and state in the rows. */
export async function closeLive(context: Context, live: LiveFile, options: { write: boolean }): Promise<void> {
  try {
    if (options.write) await rowsFromFile(context, live);
  } finally {
    if (options.write) {
      live.writers -= 1;
      if (live.writers === 0) writersLeft(context, live);
    }
    live.opens -= 1;
    if (live.opens === 0) await closeFile(context, live);
    context.activity.progressed();
  }
}

function writersLeft(context: Context, live: LiveFile): void {
  const inode = context.metadata.inodes.get(live.inode);
  if (inode === undefined) return;
  // Opened for writing, and nothing was written.
  if (inode.content === "open") context.metadata.inodes.update(inode.id, { content: "clean" });
  live.isWritten = false;
  live.isSyncAsked = false;
  lookAfterQuiet(context, inode.id);
}

/**
 * The file leaves memory only when nothing is written into it any more, and in the same step as its
 * row is brought up to date: whoever opens it next must never be overtaken by a fetch of before.
 */
async function closeFile(context: Context, live: LiveFile): Promise<void> {
  const { lives, metadata, runtime } = context;
  for (const fetch of live.fetches) fetch.stop();
  await Promise.allSettled(live.fetches.map((fetch) => fetch.done));
  const stat = await live.file.stat();
  if (live.opens > 0 || live.fetches.length > 0 || lives.get(live.lineage) !== live) return;
  lives.delete(live.lineage);
  if (metadata.lives.get(live.lineage) !== undefined) {
    const missing = formatRanges(live.missing);
    metadata.lives.update(live.lineage, { size: stat.size, bytes: stat.allocated, usedAt: runtime.now(), missing });
  }
  await live.file.close();
}

/** Size and mtime of a file that was written, from the file to the row. */
export async function rowsFromFile(context: Context, live: LiveFile): Promise<void> {
  const { metadata } = context;
  if (!live.isWritten) return;
  const stat = await live.file.stat();
  metadata.transaction(() => {
    const inode = metadata.inodes.get(live.inode);
    if (inode === undefined || inode.lineage !== live.lineage) return;
    const mtime = formatTime(stat.mtime);
    // Flush and release come one after the other, and mostly nothing happens in between.
    const ctime = parseTime(inode.ctime);
    const isKnown = inode.size === stat.size && inode.attributes.mtime === mtime;
    if (isKnown && ctime !== undefined && compareTimes(ctime, stat.ctime) >= 0) {
      if (metadata.lives.get(live.lineage)?.missing === formatRanges(live.missing)) return;
    }
    metadata.inodes.update(inode.id, {
      size: stat.size,
      attributes: { ...inode.attributes, mtime },
      ctime: formatTime(stat.ctime),
    });
    metadata.lives.update(live.lineage, { size: stat.size, missing: formatRanges(live.missing) });
    markInode(context, inode.id);
  });
}

/** To be called before bytes change: the rows say dirty, durably, before the first of them does. */
export function markWritten(context: Context, live: LiveFile): void {
  live.writes += 1;
  live.writtenAt = context.runtime.now();
  if (live.isWritten) return;
  const { metadata } = context;
  metadata.transaction(() => {
    const inode = metadata.inodes.get(live.inode);
    if (inode === undefined) throw new FsError("ESTALE", `inode ${live.inode} is gone`);
    metadata.inodes.update(inode.id, { content: "dirty", changes: inode.changes + 1, hash: null });
    markInode(context, inode.id);
  });
  live.isWritten = true;
}

/** What is missing of a file that is open for writing must be known after a crash before a change is acknowledged. */
export function keepMissing(context: Context, live: LiveFile, size: number): void {
  context.metadata.lives.update(live.lineage, { missing: formatRanges(live.missing), size });
}

/** Open writable handles of the inode. */
export function writersOf(context: Pick<Context, "lives">, inode: Inode): number {
  return context.lives.get(inode.lineage)?.writers ?? 0;
}

/** While somebody can write to it, the file itself knows its size and time; else undefined. */
export async function liveStat(context: Context, inode: Inode): Promise<{ size: number; mtime: Time } | undefined> {
  const live = context.lives.get(inode.lineage);
  if (live === undefined || live.writers === 0) return undefined;
  const { size, mtime } = await live.file.stat();
  return { size, mtime };
}

/** A program set the time: the open file shows it at once; the row is the caller's. */
export async function setLiveTimes(context: Context, inode: Inode, mtime: Time): Promise<void> {
  const live = context.lives.get(inode.lineage);
  if (live !== undefined && live.writers > 0) await live.file.setTimes(mtime);
}

/** The bytes and rows of a lineage nobody can reach any more. Not while it is open. */
export function forgetLineage(context: Context, lineage: number): void {
  const { metadata, runtime, paths, log } = context;
  if (context.lives.has(lineage)) return;
  if (metadata.lives.get(lineage) !== undefined) {
    metadata.lives.remove(lineage);
    void runtime.files
      .remove(paths.live(lineage))
      .catch((error: unknown) => log.warn({ err: error, lineage }, "a file nobody needs could not be removed"));
  }
  metadata.inodes.removeLineage(lineage);
}
