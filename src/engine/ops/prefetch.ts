/** Prefetches for programs that open the entries of a folder in order, as a part that the flows of this room take. */
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import { FilePrefetch } from "./prefetch-files.ts";
import { FolderPrefetch } from "./prefetch-folders.ts";

export interface Prefetch {
  readonly filePrefetch: FilePrefetch;
  readonly folderPrefetch: FolderPrefetch;
}

export function createPrefetch(context: Rows & LocalFiles & Remote & Host & Tree & Incoming): Prefetch {
  return { filePrefetch: new FilePrefetch(context), folderPrefetch: new FolderPrefetch(context) };
}
