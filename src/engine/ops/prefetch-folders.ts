/**
 * Prefetch of listings: when programs look into the subfolders of a folder in order (find, ls -R, du), the next
 * subfolders are listed before a program asks for them. No call waits for a prefetch or depends on it.
 */
import { unlessAborted } from "../../lib/single-flight.ts";
import type { EntryId, InodeId } from "../../metadata/ids.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { FsError } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import { AccessSequences } from "../host/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";

/** It has to reach over the files that lie between the subfolders. */
const REACH = { skipped: 100, lookedAt: 200 };
/**
 * Names in one page of a list. Neighbouring folders are alike, so after a larger folder there is no prefetch: it would
 * take many pages, and perhaps no program wants them.
 */
const LARGE = 1000;

export class FolderPrefetch {
  readonly #context: Rows & LocalFiles & Remote & Host & Tree & Incoming;
  /** Folders whose subfolders programs open in order. */
  readonly #sequences: AccessSequences;

  constructor(context: Rows & LocalFiles & Remote & Host & Tree & Incoming) {
    this.#context = context;
    this.#sequences = new AccessSequences(context.metadata);
  }

  /**
   * A program looks into the folder. Resolves when all its names are known. Rejects as `folders.complete` does: with
   * EINTR when the signal aborts, which does not stop the list for others.
   */
  async complete(folder: InodeId, signal: AbortSignal): Promise<void> {
    const { metadata, folders } = this.#context;
    const isKnown = metadata.inodes.get(folder)?.listed !== null;
    const done = isKnown ? undefined : folders.complete(folder, signal);
    if (!isKnown || this.#sequences.size > 0) this.#lookAhead(folder, !isKnown);
    await done;
  }

  /** Never throws, because errors of other folders do not concern the program. */
  #lookAhead(folder: InodeId, isMissing: boolean): void {
    try {
      this.#follow(folder, isMissing);
    } catch (error) {
      this.#context.log.debug({ err: error, folder }, "the next folders are not listed ahead");
    }
  }

  #follow(folder: InodeId, isMissing: boolean): void {
    const context = this.#context;
    const { metadata } = context;
    const [entry] = metadata.entries.ofInode(folder);
    if (entry === undefined || folder === ROOT_INODE) return;
    const before = this.#sequences.lastIn(entry.parent);
    const read = this.#sequences.record(entry, isMissing, REACH);
    if (read === undefined || before === undefined || !mayList(context) || isLarge(context, before)) return;
    // However many programs go through folders, some connections stay free for requests that programs wait for.
    if (context.listingPrefetches.size >= AccessSequences.AHEAD_MAX) return;
    this.#sequences.fetchNext(entry.parent, read, REACH, ({ inode }) => {
      const next = metadata.inodes.get(inode);
      if (next?.kind !== "folder" || next.listed !== null || context.nodeRows.ofFolder(inode)?.nodeId == null)
        return false;
      context.background("listing the next folder", () => listAhead(context, inode));
      return true;
    });
  }
}

/**
 * Lists the folder. Never rejects: if it fails, a program that looks into the folder will list it. `wantsAll` is asked
 * after each page of a large folder whether to go on; by default the list ends after the first page.
 */
export async function listAhead(
  context: LocalFiles & Host & Incoming,
  folder: InodeId,
  wantsAll = () => false,
): Promise<void> {
  try {
    const signal = context.fileState.stopped;
    const listing = context.folders.prefetch(folder, wantsAll);
    await unlessAborted(listing, signal, () => new FsError("EIO", "the mount ends"));
  } catch (error) {
    context.log.debug({ err: error, folder }, "listing a folder before a program asked failed");
  }
}

/**
 * No program asked for a prefetch. So there is none where a list would be old by the time a program wants it (plain
 * gateways), where its rows could not be stored, or where the gateway is offline or asked for a pause.
 */
export function mayList({ network, disk, client, fileState }: LocalFiles & Remote): boolean {
  if (!network.isOnline || network.pauseMs("listNodes") > 0 || disk.trouble !== undefined) return false;
  return client.features.isFull && !fileState.stopped.aborted;
}

function isLarge(context: Rows, entry: EntryId): boolean {
  const { metadata } = context;
  const nodeId = metadata.nodes.ofEntry(entry)?.nodeId;
  return nodeId != null && metadata.nodes.countBelow(nodeId) >= LARGE;
}
