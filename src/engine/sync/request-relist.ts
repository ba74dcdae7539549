/** Marks known folders of which something may have been told that nobody here heard; relist.ts lists them. */
import type { InodeId } from "../../metadata/ids.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";

/** Something may have come into the folder (an inode) of which nothing will tell but its list. */
export function requestRelist({ metadata, listings, activity }: Rows & Remote & Uploads, folder: InodeId): void {
  const inode = metadata.inodes.get(folder);
  // One that is not completely known is listed when somebody looks; a list that is under way may be too old.
  if (inode === undefined || (inode.listed === null && !listings.isRunning(folder))) return;
  metadata.relists.add(folder);
  activity.wake();
}

/** Whether the turn of a marked folder has come. */
export const isRelistDue = ({ metadata, runtime }: Rows & Host): boolean =>
  metadata.relists.next(runtime.now()) !== undefined;
