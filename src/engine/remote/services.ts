/** The services of remote/ for other rooms. Each method is a flow of this room, whose own file says more. */
import type { InodeId } from "../../metadata/ids.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { createLoop, type Follower } from "./follow.ts";
import { createHearing } from "./hear-journal.ts";
import type { JournalStream } from "./journal-stream.ts";
import { completeFolder, prefetchListing } from "./listing.ts";
import { pollFolders, visitFolder } from "./poll.ts";
import { prefetchTree, type TreeListing } from "./tree-listing.ts";

/** Lists of folders. */
interface Listings {
  /**
   * Resolves when every name of the folder is known. Rejects with an FsError: EINTR when the signal aborts, EIO when the
   * mount ends, else as the gateway's failure says.
   */
  complete(folder: InodeId, signal: AbortSignal): Promise<void>;
  /** Lists a folder that no program has asked for; of a large one only the wanted pages. Rejects as `complete` does. */
  prefetch(folder: InodeId, wantsMore: () => boolean): Promise<void>;
  /**
   * Lists a folder and the unknown folders below it, from one stream. Asks `mayGoOn` between two folders. refused: the
   * gateway has no such stream. broken: folders that were listed by then stay known. Never rejects for a failure of the
   * gateway: the result tells it.
   */
  prefetchTree(folder: InodeId, wantsMore: () => boolean, mayGoOn: () => Promise<boolean>): Promise<TreeListing>;
  /** A program looked into the folder. */
  visit(folder: InodeId): void;
}

export interface Incoming {
  readonly folders: Listings;
}

export function createIncoming(context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync): Incoming {
  return {
    folders: {
      complete: (folder, signal) => completeFolder(context, folder, signal),
      prefetch: (folder, wantsMore) => prefetchListing(context, folder, wantsMore),
      prefetchTree: (folder, wantsMore, mayGoOn) => prefetchTree(context, folder, wantsMore, mayGoOn),
      visit: (folder) => visitFolder(context, folder),
    },
  };
}

/**
 * Follows the journal by `stream` and in pages. Without `stream` there is no journal: known folders are listed in turn.
 */
export function createFollower(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree & Sync,
  stream?: JournalStream,
): Follower {
  if (stream === undefined) return createLoop(context, (signal) => pollFolders(context, signal));
  return createLoop(context, createHearing(context, stream), stream);
}
