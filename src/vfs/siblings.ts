/**
 * Small files of a folder that are opened one after the other, in the order in which the folder lists
 * them (grep -r, cp -r, a build): the next ones are fetched before they are asked for, so that each does not
 * cost a round trip. It only fetches: what a program opens is never waited for or decided here.
 */
import { partsWithin } from "../lib/ranges.ts";
import { unlessAborted } from "../lib/single-flight.ts";
import type { Entry } from "../metadata/entries.ts";
import type { Inode } from "../metadata/inodes.ts";
import { inBackground } from "./byte-state.ts";
import type { Context } from "./context.ts";
import { FsError } from "./errors.ts";
import { fetchAhead, SMALL } from "./fetch.ts";
import { closeLive, openLive } from "./live.ts";
import type { LiveFile, SiblingRead } from "./live-file.ts";

/** Some connections are left to those who wait. */
const AHEAD_MAX = 12;
const AHEAD_FIRST = 4;
/** A program that skips some (it wants *.c) reads them in order still. */
const SKIPPED = 8;
/** Looked at for one open, whatever they are. */
const LOOKED_AT = 32;
/** Folders whose last open is remembered. */
const FOLDERS = 64;

/** A program opened the file to read it. Never fails: what is wrong with others is none of its business. */
export function opened(context: Context, live: LiveFile): void {
  try {
    follow(context, live);
  } catch (error) {
    context.log.debug({ err: error, lineage: live.lineage }, "the next files of a folder are not fetched ahead");
  }
}

function follow(context: Context, live: LiveFile): void {
  const { siblings } = context.bytes;
  const names = context.metadata.entries.ofInode(live.inode);
  const [entry] = names;
  // Of a file with several names nobody knows by which it was opened.
  if (entry === undefined || names.length > 1) return;
  const read = siblings.get(entry.parent);
  if (live.missing.length === 0 && (read === undefined || !read.ahead.includes(entry.id))) return;
  if (read === undefined || !isNext(context, read, entry)) {
    remember(siblings, entry.parent, { last: entry.id, upTo: entry.id, window: 0, ahead: [] });
    return;
  }
  read.last = entry.id;
  read.upTo = Math.max(read.upTo, entry.id);
  read.ahead = read.ahead.filter((id) => id > entry.id);
  read.window = Math.min(AHEAD_MAX, Math.max(AHEAD_FIRST, read.window * 2));
  remember(siblings, entry.parent, read);
  if (mayFetch(context)) fetchNext(context, entry.parent, read);
}

function isNext({ metadata }: Context, { last, ahead }: SiblingRead, { id, parent }: Entry): boolean {
  if (id <= last) return false;
  if (ahead.includes(id)) return true;
  return metadata.entries.list(parent, last, SKIPPED).some((other) => other.id === id);
}

/** The folder used last is the last to be forgotten. */
function remember(siblings: Map<number, SiblingRead>, folder: number, read: SiblingRead): void {
  siblings.delete(folder);
  siblings.set(folder, read);
  const [oldest] = siblings.keys();
  if (siblings.size > FOLDERS && oldest !== undefined) siblings.delete(oldest);
}

/** Nobody asked for it: not where it would take something from somebody, or somebody would have to wait. */
function mayFetch({ network, disk, metadata, settings, bytes }: Context): boolean {
  if (!network.isOnline || disk.trouble !== undefined || !disk.mayKeep || bytes.stopped.signal.aborted) return false;
  return metadata.lives.totalBytes() + AHEAD_MAX * SMALL <= settings.cacheLimit;
}

function fetchNext(context: Context, folder: number, read: SiblingRead): void {
  if (read.ahead.length >= read.window) return;
  for (const entry of context.metadata.entries.list(folder, read.upTo, LOOKED_AT)) {
    if (read.ahead.length >= read.window) return;
    read.upTo = entry.id;
    const inode = context.metadata.inodes.get(entry.inode);
    if (inode === undefined || !isWanted(context, inode)) continue;
    read.ahead.push(entry.id);
    inBackground(context, "fetching the next file of a folder", () => fetchWhole(context, inode.lineage));
  }
}

/** Small, the gateway's, and not here. */
function isWanted({ metadata, lives }: Context, { kind, content, size, lineage, originVersion }: Inode): boolean {
  if (kind !== "file" || content !== "clean" || originVersion === null || size === 0 || size > SMALL) return false;
  return !lives.has(lineage) && (metadata.lives.get(lineage)?.missing ?? "") !== "[]";
}

/** As if somebody read it. Should that fail, whoever opens it asks again. */
async function fetchWhole(context: Context, lineage: number): Promise<void> {
  const { signal } = context.bytes.stopped;
  try {
    const live = await openLive(context, lineage, { write: false });
    try {
      const [gap] = partsWithin(live.missing, 0, SMALL);
      if (gap === undefined || !live.isKept) return;
      fetchAhead(context, live, gap.start, SMALL);
      const done = Promise.all([...live.downloads].map((download) => download.done));
      await unlessAborted(done, signal, () => new FsError("EIO", "the mount ends"));
    } finally {
      await closeLive(context, live, { write: false });
    }
  } catch (error) {
    context.log.debug({ err: error, lineage }, "fetching the next file of a folder failed");
  }
}
