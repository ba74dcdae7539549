/**
 * What programs come to one after the other, in the order in which its folder lists it (grep -r, find, cp -r, a build):
 * the next ones are worth being fetched before they are asked for, so that each does not cost a round trip. Knows
 * nothing of what is fetched.
 */
import type { Entry } from "../../metadata/entries.ts";
import type { After, EntryId, InodeId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";

/** How far a folder was read. Entries by their ids, which are the order in which it is listed. */
interface Read {
  last: EntryId;
  /** Up to this one they have been looked at. */
  upTo: After<EntryId>;
  window: number;
  /** Fetched or being fetched, and not come to yet. */
  ahead: EntryId[];
}

/** By folder (inode), the longest unused first. */
export type AccessSequences = Map<InodeId, Read>;

/** Some connections are left to those who wait. */
export const AHEAD_MAX = 12;
const AHEAD_FIRST = 4;
/** Folders whose last read is remembered. */
const FOLDERS = 64;

export interface Sequence {
  /** A program that skips so many (it wants *.c) reads in order still. */
  readonly skipped: number;
  /** Looked at for one that is read, whatever they are. */
  readonly lookedAt: number;
}

interface Needs {
  readonly metadata: Pick<Metadata<unknown>, "entries">;
}

/**
 * A program came to an entry; `isMissing`: it has to be fetched. The folder's read, if what comes next is worth being
 * fetched.
 */
export function recordAccess(
  { metadata }: Needs,
  reads: AccessSequences,
  { id, parent }: Entry,
  isMissing: boolean,
  { skipped }: Sequence,
): Read | undefined {
  const read = reads.get(parent);
  const isAhead = read?.ahead.includes(id) === true;
  if (!isMissing && !isAhead) return undefined;
  const isNext = () => metadata.entries.list(parent, read?.last ?? 0, skipped).some((other) => other.id === id);
  if (read === undefined || id <= read.last || !(isAhead || isNext())) {
    remember(reads, parent, { last: id, upTo: id, window: 0, ahead: [] });
    return undefined;
  }
  read.last = id;
  if (id > read.upTo) read.upTo = id;
  read.ahead = read.ahead.filter((other) => other > id);
  read.window = Math.min(AHEAD_MAX, Math.max(AHEAD_FIRST, read.window * 2));
  remember(reads, parent, read);
  return read;
}

/** The folder read last is the last to be forgotten. */
function remember(reads: AccessSequences, folder: InodeId, read: Read): void {
  reads.delete(folder);
  reads.set(folder, read);
  const [oldest] = reads.keys();
  if (reads.size > FOLDERS && oldest !== undefined) reads.delete(oldest);
}

/** Goes on to the next ones; `fetch`: begins to fetch it, if it is one to be fetched. */
export function fetchNext(
  { metadata }: Needs,
  folder: InodeId,
  read: Read,
  { lookedAt }: Sequence,
  fetch: (entry: Entry) => boolean,
): void {
  if (read.ahead.length >= read.window) return;
  for (const entry of metadata.entries.list(folder, read.upTo, lookedAt)) {
    if (read.ahead.length >= read.window) return;
    read.upTo = entry.id;
    if (fetch(entry)) read.ahead.push(entry.id);
  }
}
