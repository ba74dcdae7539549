/**
 * Detects sequences: a program opens the entries of a folder in the order in which the folder lists them (grep -r,
 * find, cp -r, a build). Then the next ones are worth prefetching, so that not each of them costs a round trip. Knows
 * nothing of the fetching.
 */
import type { Entry } from "../../metadata/entries.ts";
import type { After, EntryId, InodeId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";

/** The place up to which a folder was read. Entries are known by their ids, in whose order the folder lists them. */
interface Read {
  last: EntryId;
  /** Entries up to this one were considered for prefetching. */
  upTo: After<EntryId>;
  /** Entries that may be ahead at a time. */
  window: number;
  /** Entries that were prefetched, or are being prefetched, and that the program has not reached yet. */
  ahead: EntryId[];
}

const AHEAD_FIRST = 4;
/** Folders that are remembered, at most. */
const FOLDERS = 64;

interface Sequence {
  /** Entries that a program may skip (it wants *.c) and still read in order. */
  readonly skipped: number;
  /** Entries considered per access, whether they are fetched or not. */
  readonly lookedAt: number;
}

/** The last folders that were read, and the place up to which each was read. */
export class AccessSequences {
  /** The most entries of a folder ahead at a time. Each takes a connection while it is fetched. */
  static readonly AHEAD_MAX = 20;
  readonly #entries: Metadata<unknown>["entries"];
  /** By folder (inode), the longest unused first. */
  readonly #reads = new Map<InodeId, Read>();

  constructor({ entries }: Pick<Metadata<unknown>, "entries">) {
    this.#entries = entries;
  }

  /** How many folders are remembered. */
  get size(): number {
    return this.#reads.size;
  }

  /** The entry of the folder that a program came to last. */
  lastIn(folder: InodeId): EntryId | undefined {
    return this.#reads.get(folder)?.last;
  }

  /**
   * A program came to an entry. `isMissing`: the entry has to be fetched. Returns the state of the folder when the next
   * entries are worth prefetching, else undefined.
   */
  record({ id, parent }: Entry, isMissing: boolean, { skipped }: Sequence): Read | undefined {
    const read = this.#reads.get(parent);
    const isAhead = read?.ahead.includes(id) === true;
    if (!isMissing && !isAhead) return undefined;
    const isNext = () => this.#entries.list(parent, read?.last ?? 0, skipped).some((other) => other.id === id);
    if (read === undefined || id <= read.last || !(isAhead || isNext())) {
      this.#remember(parent, { last: id, upTo: id, window: 0, ahead: [] });
      return undefined;
    }
    read.last = id;
    if (id > read.upTo) read.upTo = id;
    read.ahead = read.ahead.filter((other) => other > id);
    read.window = Math.min(AccessSequences.AHEAD_MAX, Math.max(AHEAD_FIRST, read.window * 2));
    this.#remember(parent, read);
    return read;
  }

  /**
   * Goes on to the next entries. `fetch` begins to fetch the entry and returns true, or returns false if it need not be
   * fetched.
   */
  fetchNext(folder: InodeId, read: Read, { lookedAt }: Sequence, fetch: (entry: Entry) => boolean): void {
    if (read.ahead.length >= read.window) return;
    for (const entry of this.#entries.list(folder, read.upTo, lookedAt)) {
      if (read.ahead.length >= read.window) return;
      read.upTo = entry.id;
      if (fetch(entry)) read.ahead.push(entry.id);
    }
  }

  /** The folder read last is forgotten last. */
  #remember(folder: InodeId, read: Read): void {
    const reads = this.#reads;
    reads.delete(folder);
    reads.set(folder, read);
    const [oldest] = reads.keys();
    if (reads.size > FOLDERS && oldest !== undefined) reads.delete(oldest);
  }
}
