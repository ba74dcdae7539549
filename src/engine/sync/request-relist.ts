/** Marks known folders that may have news that was not heard here. remote/relist.ts lists them. */
import type { InodeId } from "../../metadata/ids.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";

/** Nodes may have come into the folder (an inode), and only its list will show them. */
export function requestRelist({ metadata, listings, activity }: Rows & Remote & Uploads, folder: InodeId): void {
  const inode = metadata.inodes.get(folder);
  // A folder that is not complete is listed when a program looks, so it needs no mark. But a list that is under way may
  // be too old.
  if (inode === undefined || (inode.listed === null && !listings.isRunning(folder))) return;
  metadata.relists.add(folder);
  activity.wake();
}

/** True: a marked folder may be listed now. */
export const isRelistDue = ({ metadata, runtime }: Rows & Host): boolean =>
  metadata.relists.next(runtime.now()) !== undefined;
