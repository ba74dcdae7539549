/** The one local file that every open of a lineage reads and writes. */
import type { OpenFile } from "../lib/files.ts";
import type { Ranges } from "../lib/ranges.ts";

export interface LiveFile {
  readonly lineage: number;
  readonly inode: number;
  readonly file: OpenFile;
  /** The version the missing ranges belong to. */
  readonly origin: { readonly node: string; readonly version: string } | undefined;
  missing: Ranges;
  opens: number;
  writers: number;
  /** Something may have changed since the last cut or clean state. */
  isWritten: boolean;
}
