/**
 * Prefetch of listings: when programs look into the subfolders of a folder in order (find, ls -R, du), the next ones
 * are listed before they are asked for. It only lists: what a program looks into never waits for this and is not
 * decided here.
 */
import { unlessAborted } from "../../lib/single-flight.ts";
import type { EntryId, InodeId } from "../../metadata/ids.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { FsError } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import { AccessSequences } from "../host/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";

/** Files are skipped. */
const REACH = { skipped: 100, lookedAt: 200 };
/**
 * One page of a list at the gateway. Neighbouring folders are alike, so after a larger one no list is prefetched that
 * perhaps no program wants.
 */
const LARGE = 1000;

/**
 * A program looks into the folder. Resolves when every name is known. Rejects like Listings.complete: EINTR when the
 * signal aborts, which does not stop the list for others.
 */
export async function prefetchFolders(
  context: Rows & LocalFiles & Remote & Host & Tree & Incoming,
  folder: InodeId,
  signal: AbortSignal,
): Promise<void> {
  const isKnown = context.metadata.inodes.get(folder)?.listed !== null;
  const done = isKnown ? undefined : context.folders.complete(folder, signal);
  if (!isKnown || context.directorySequences.size > 0) lookAhead(context, folder, !isKnown);
  await done;
}

/** Never fails, because trouble with other folders is not the program's. */
function lookAhead(
  context: Rows & LocalFiles & Remote & Host & Tree & Incoming,
  folder: InodeId,
  isMissing: boolean,
): void {
  try {
    follow(context, folder, isMissing);
  } catch (error) {
    context.log.debug({ err: error, folder }, "the next folders are not listed ahead");
  }
}

function follow(
  context: Rows & LocalFiles & Remote & Host & Tree & Incoming,
  folder: InodeId,
  isMissing: boolean,
): void {
  const { metadata, directorySequences } = context;
  const [entry] = metadata.entries.ofInode(folder);
  if (entry === undefined || folder === ROOT_INODE) return;
  const before = directorySequences.lastIn(entry.parent);
  const read = directorySequences.record(entry, isMissing, REACH);
  if (read === undefined || before === undefined || !mayList(context) || isLarge(context, before)) return;
  // However many programs go through folders, some connections stay free for those who wait.
  if (context.listingPrefetches.size >= AccessSequences.AHEAD_MAX) return;
  directorySequences.fetchNext(entry.parent, read, REACH, ({ inode }) => {
    const next = metadata.inodes.get(inode);
    if (next?.kind !== "folder" || next.listed !== null || context.nodeRows.ofFolder(inode)?.nodeId == null)
      return false;
    context.background("listing the next folder", () => listAhead(context, inode));
    return true;
  });
}

/**
 * If this fails, the program that looks into the folder lists it again. `wantsAll` says after each page of a large
 * folder whether to go on; by default the first page is all.
 */
export async function listAhead(
  context: LocalFiles & Host & Incoming,
  folder: InodeId,
  wantsAll = () => false,
): Promise<void> {
  try {
    const { signal } = context.fileState.stopped;
    const listing = context.folders.prefetch(folder, wantsAll);
    await unlessAborted(listing, signal, () => new FsError("EIO", "the mount ends"));
  } catch (error) {
    context.log.debug({ err: error, folder }, "listing a folder before a program asked failed");
  }
}

/**
 * No program asked for a prefetch. So there is none where its list would be old by the time a program wants it, where
 * its rows could not be stored, or where the gateway asked for a pause.
 */
export function mayList({ network, disk, client, fileState }: LocalFiles & Remote): boolean {
  if (!network.isOnline || network.pauseMs("listNodes") > 0 || disk.trouble !== undefined) return false;
  return client.features.isFull && !fileState.stopped.signal.aborted;
}

function isLarge(context: Rows, entry: EntryId): boolean {
  const { metadata } = context;
  const nodeId = metadata.nodes.ofEntry(entry)?.nodeId;
  return nodeId != null && metadata.nodes.countBelow(nodeId) >= LARGE;
}
