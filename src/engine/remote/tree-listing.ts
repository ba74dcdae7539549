/**
 * Lists a folder and all folders below it from one stream of the gateway. Each unknown folder is listed as always
 * (listing.ts); only its pages, and the journal's entries since the stream's position, come from here.
 *
 * Invariant: while a stream is read, it counts as a list under way, because its position may be older than deletions
 * that all newer lists show already. Parts that were read before a rollback of the gateway, or before late entries of
 * the journal came, are not used.
 */
import { hasNoNodeStream, RemoteError } from "../../client/errors.ts";
import type { JournalPage, Node } from "../../contract/resources.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { endOf, type ListSource, prefetchListing } from "./listing.ts";

/** Each folder looks through all entries since the position. With more of them than this, a new stream costs less. */
const ENTRIES_MAX = 500;
const JOURNAL_PAGE = 1000;

/** `broken`: the stream ended early in, or right after, the folder `at`, or right before `at` if it is the first one. */
export type TreeListing =
  | { readonly end: "whole" | "refused" }
  | { readonly end: "broken"; readonly at: InodeId; readonly error: unknown };

type Needs = Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync;

/** See Listings.prefetchTree (services.ts). */
export async function prefetchTree(
  context: Needs,
  folder: InodeId,
  wantsMore: () => boolean,
  mayGoOn: () => Promise<boolean>,
): Promise<TreeListing> {
  const { metadata, client, fileState, network, nodeRows, treeListings, listings } = context;
  const nodeId = nodeRows.ofFolder(folder)?.nodeId;
  if (nodeId == null) return { end: "whole" };
  treeListings.count += 1;
  const { resets } = treeListings;
  const isOld = () => treeListings.resets !== resets;
  const over = new AbortController();
  const signal = AbortSignal.any([fileState.stopped, over.signal]);
  const parts = readParts(client.streamNodes({ parentId: nodeId, signal }), isOld);
  const journal = journalSince(context, isOld);
  let at = folder;
  try {
    try {
      await parts.advance();
    } catch (error) {
      if (hasNoNodeStream(error)) return { end: "refused" };
      network.failed(error);
      throw error;
    }
    network.answered();
    for (let part = parts.current(); part !== undefined && !signal.aborted && !isOld(); part = parts.current()) {
      const { folder: id } = part;
      const inode = nodeRows.folderOfNode(id);
      at = inode ?? at;
      const isUnknown = inode !== undefined && metadata.inodes.get(inode)?.listed === null;
      if (isUnknown && !listings.isRunning(inode)) {
        // A failure ends the whole stream: the list that failed may still be reading these parts, so none may be
        // skipped for it.
        await prefetchListing(context, inode, wantsMore, { page: parts.pageOf(id), journal: journal.page });
      }
      while (parts.current()?.folder === id) await parts.advance();
      if (journal.isLong() || !(await mayGoOn())) break;
    }
    return { end: "whole" };
  } catch (error) {
    return { end: "broken", at, error };
  } finally {
    over.abort();
    treeListings.count -= 1;
    await parts.close();
  }
}

type Part = { readonly folder: string; readonly asOf: number; readonly after: string; readonly items: readonly Node[] };

/**
 * The error for a list that asks for more after the end of the stream. It says nothing of the gateway. Programs that
 * wait for the list begin it once more.
 */
const ended = () => new RemoteError("aborted", "the stream of the tree has ended");

function readParts(stream: AsyncGenerator<Part, void, undefined>, isOld: () => boolean) {
  let current: Part | undefined;
  let isClosed = false;

  async function advance(): Promise<void> {
    current = undefined;
    const { done, value } = await stream.next();
    current = done === true ? undefined : value;
  }

  return {
    current: () => current,
    advance,
    /** The pages of one folder are its parts in the stream. The next part shows whether a part is the folder's last. */
    pageOf(folder: string): ListSource["page"] {
      return async (after, signal) => {
        const part = current;
        const isNext = part?.folder === folder && (after === undefined || after === part.after);
        if (isClosed || isOld() || !isNext) throw ended();
        await unlessAborted(advance(), signal, () => new RemoteError("aborted", "the call was aborted"));
        if (isOld()) throw ended();
        const next = current?.folder === folder ? current.after : null;
        return { items: [...part.items], totalCount: part.items.length, asOf: part.asOf, next };
      };
    },
    async close() {
      isClosed = true;
      current = undefined;
      await stream.return();
    },
  };
}

/** Pages of the journal since the stream's position. Each is asked for once, for all folders of the stream. */
function journalSince({ client, workspace }: Remote, isOld: () => boolean) {
  const pages = new Map<number, JournalPage>();
  let entries = 0;
  const page: ListSource["journal"] = async (position, signal) => {
    if (isOld()) throw ended();
    const known = pages.get(position);
    if (known !== undefined) return known;
    const read = await client.readJournal(workspace.id, position, { pageSize: JOURNAL_PAGE, signal });
    // A page without news is not kept, so that it is asked for again.
    if (endOf(read) > position) {
      pages.set(position, read);
      entries += read.items.length;
    }
    return read;
  };
  return { page, isLong: () => entries > ENTRIES_MAX };
}
