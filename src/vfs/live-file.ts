/** The one local file that every open of a lineage reads and writes, while it is open. */
import type { OpenFile } from "../lib/files.ts";
import type { Ranges } from "../lib/ranges.ts";

export interface Fetch {
  readonly start: number;
  readonly end: number;
  readonly done: Promise<void>;
  /** Gives it up; `done` settles soon. */
  readonly stop: () => void;
}

export interface LiveFile {
  readonly lineage: number;
  readonly inode: number;
  readonly file: OpenFile;
  /** The version the missing ranges belong to. */
  readonly origin: { readonly node: string; readonly version: string } | undefined;
  /** Parts of the origin that are not in the file yet. */
  missing: Ranges;
  opens: number;
  writers: number;
  /** Bytes may have changed since the last cut, or since the content was clean. */
  isWritten: boolean;
  /** Goes up with every change of bytes, so that a cut can tell whether one came in between. */
  writes: number;
  /** The file's own name in the state folder survives power loss. */
  isNameSynced: boolean;
  /** When bytes last changed, and whether a program asked for them to be safe since (fsync). */
  writtenAt: number;
  isSyncAsked: boolean;
  /** A chunk of the origin that is being written into the file right now; changes wait for it. */
  filling: Promise<void>;
  readonly fetches: Fetch[];
  /** Where a sequential reader would go on, and how far ahead of it is read. */
  readEnd: number;
  window: number;
}
