/**
 * Makes a folder complete: all its names are known afterwards. Lists it at the gateway, page by page, which shows
 * everything up to a position (`asOf`). Then applies the journal's entries between that position and the cursor, which
 * were passed over while the folder was not listed. A list may be late: a node in it is judged by its revision, and a
 * known node that is not in it is read by its id.
 */
import { RemoteError } from "../../client/errors.ts";
import type { JournalEntry, JournalPage, NodePage } from "../../contract/resources.ts";
import { forEachAtOnce } from "../../lib/at-once.ts";
import { minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { NextCaller } from "../../lib/single-flight.ts";
import type { InodeId } from "../../metadata/ids.ts";
import { type Below, isKnownAfter, type NodeRow, newestRevision } from "../../metadata/nodes.ts";
import { FsError } from "../api/index.ts";
import {
  type Host,
  isRetryable,
  type LocalFiles,
  type Remote,
  type Rows,
  retryDelay,
  type Uploads,
} from "../core/index.ts";
import { limitList } from "../host/index.ts";
import { type Sync, shownUpTo } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { applyEntries, isUnread, READERS, readAgain, readNews } from "./follow.ts";
import { observeTogether } from "./observe-batch.ts";

const PAGE = 1000;
/** Nodes observed in one synchronous stretch. */
const SLICE = 200;
/**
 * A list with so many pages in a row without a new node has no end. A few are normal with numbered pages: an added name
 * moves others to the next page, which shows them again.
 */
const IDLE_MAX = 5;
/** For so long a gateway, or one of several behind one name, may not find the id of a node, say of a new one. */
export const NOT_FOUND_MS = 30_000;

/**
 * Resolves when every name of the folder is known. Rejects with an FsError: EINTR when the signal aborts (the list goes
 * on for others that wait), EIO when the mount ends, else as the gateway's failure says.
 */
export async function completeFolder(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  signal: AbortSignal,
): Promise<void> {
  const list = () => run(context, folder, (nextCaller) => listFolder(context, folder, nextCaller), signal);
  // Another flow may have begun this list while the gateway was silent, or with a single try because no program waited.
  // A failure of that list says nothing of the gateway's present answers, so the list is begun once more.
  if (context.listings.isRunning(folder)) {
    await list().catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
  }
  await list();
}

function run(context: Remote, folder: InodeId, list: (nextCaller: NextCaller) => Promise<void>, signal: AbortSignal) {
  return context.listings.run(folder, list, signal, () => new FsError("EINTR", "the list of the folder was given up"));
}

/** The source of a list, and of the journal since. All calls reject with a RemoteError. */
export interface ListSource {
  /** The first page, or the page after the one whose `next` this is. */
  page(after: string | undefined, signal: AbortSignal): Promise<ListPage>;
  journal(position: number, signal: AbortSignal): Promise<JournalPage>;
}

type ListPage = Pick<NodePage, "items" | "totalCount" | "asOf" | "next">;

/**
 * Lists a folder that no program has asked for: with one try, and of a large folder only the pages that are wanted,
 * unless a program comes to wait for it. Rejects like completeFolder. `source`: by default the folder's own list.
 */
export async function prefetchListing(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  wantsMore: () => boolean,
  source?: ListSource,
): Promise<void> {
  const { listings, listingPrefetches, fileState } = context;
  const nodeId = context.nodeRows.ofFolder(folder)?.nodeId;
  if (nodeId == null || listings.isRunning(folder)) return;
  const first = new AbortController();
  const onMore = () => {
    if (!wantsMore()) first.abort();
  };
  const asking = { signal: fileState.stopped, isAwaited: false, onMore, source };
  listingPrefetches.add(folder);
  try {
    await run(
      context,
      folder,
      (nextCaller) => readList(context, folder, nodeId, { ...asking, nextCaller }),
      first.signal,
    );
  } finally {
    listingPrefetches.delete(folder);
  }
}

async function listFolder(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  nextCaller: NextCaller,
): Promise<void> {
  const { metadata } = context;
  const nodeId = context.nodeRows.ofFolder(folder)?.nodeId;
  // The folder was removed meanwhile, is listed by now, or is unborn: the gateway can have no other names of an unborn
  // folder.
  if (nodeId == null || metadata.inodes.get(folder)?.listed !== null) return;
  await readList(context, folder, nodeId, { signal: new AbortController().signal, isAwaited: true, nextCaller });
}

/** Lists a known folder again, because the journal does not tell its changes. Rejects like completeFolder. */
export async function relistFolder(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  signal: AbortSignal,
): Promise<void> {
  const nodeId = context.nodeRows.ofFolder(folder)?.nodeId;
  if (nodeId == null) return;
  const asking = { signal, isAwaited: false };
  await run(context, folder, (nextCaller) => readList(context, folder, nodeId, { ...asking, nextCaller }), signal);
}

interface Asking {
  readonly signal: AbortSignal;
  /** A program waits for the list, so failures that pass are retried. Otherwise a failure ends this try. */
  readonly isAwaited: boolean;
  readonly nextCaller: NextCaller;
  readonly source?: ListSource | undefined;
  /** Called after each page that is not the last. */
  readonly onMore?: () => void;
}

async function readList(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  nodeId: string,
  asking: Asking,
): Promise<void> {
  const source = asking.source ?? ownSource(context, nodeId);
  const { shown, asOf } = await readPages(context, nodeId, asking, source);
  context.shown.note(asOf);
  await confirmAbsent(context, nodeId, shown, asOf, asking);
  if (!context.client.features.isFull) await confirmWaiting(context, nodeId, shown, asking);
  await catchUp(context, folder, nodeId, asOf, asking, source);
}

function ownSource({ client, workspace }: Remote, nodeId: string): ListSource {
  return {
    page: (after, signal) =>
      client.listFolder(nodeId, { pageSize: PAGE, signal, ...(after === undefined ? {} : { after }) }),
    journal: (position, signal) => client.readJournal(workspace.id, position, { signal }),
  };
}

interface List {
  /** The ids of the nodes in the list. */
  readonly shown: ReadonlySet<string>;
  /** The position up to which the list shows everything. Of numbered pages, which differ in age, the oldest counts. */
  readonly asOf: number;
}

function endless(nodeId: string): RemoteError {
  const what = `${IDLE_MAX} pages in a row of folder ${nodeId} show nothing that others have not, and are not the last`;
  return new RemoteError("malformed", what);
}

async function readPages(
  context: Rows & Remote & Host & Tree & Sync,
  nodeId: string,
  asking: Asking,
  source: ListSource,
): Promise<List> {
  const { metadata } = context;
  const shown = new Set<string>();
  const check = limitList(`names in folder ${nodeId}`);
  let after: string | undefined;
  let asOf = Number.POSITIVE_INFINITY;
  for (let idle = 0; ; ) {
    const begun = context.runtime.now();
    const before = shown.size;
    const page = await ask(context, asking, async (limit) => check(await source.page(after, limit)));
    if (asking.signal.aborted) throw new FsError("EIO", "the mount ends");
    asOf = Math.min(asOf, shownUpTo(context, page.asOf, begun));
    for (let start = 0; start < page.items.length; start += SLICE) {
      const slice = page.items.slice(start, start + SLICE);
      observeTogether(context, slice, "others");
      metadata.transaction(() => {
        for (const node of slice) {
          shown.add(node.id);
          context.observer.node(node);
        }
      });
      context.runtime.step("listing: slice kept");
      if (start + SLICE < page.items.length) await breathe(context);
    }
    if (page.next == null) return { shown, asOf };
    idle = shown.size > before ? 0 : idle + 1;
    if (idle === IDLE_MAX) throw endless(nodeId);
    asking.onMore?.();
    after = page.next;
  }
}

/** The position up to which the journal is told once this page has come. */
export function endOf({ items, pageSize, asOf }: JournalPage): number {
  return Math.max(items.at(-1)?.position ?? 0, items.length < pageSize ? asOf : 0);
}

/**
 * Runs a call. For a list that a program waits for, failures that pass by themselves are retried. A gateway that is
 * known to be away is asked once.
 */
async function ask<T>(context: Remote & Host, asking: Asking, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { network, runtime } = context;
  const { signal, isAwaited } = asking;
  // This is decided once, before the first call, because the first broken connection makes the gateway count as away
  // until another call is answered.
  const mayPass = isAwaited && network.isOnline;
  for (let tries = 1; ; tries += 1) {
    const standing = asking.nextCaller();
    if (standing !== undefined) await standing;
    try {
      return await network.ask(signal, call);
    } catch (error) {
      const cause = error instanceof FsError ? error.cause : undefined;
      const isAgain = mayPass && cause instanceof RemoteError && isRetryable(cause) && !signal.aborted;
      const wait = isAgain ? retryDelay(context, cause, tries) : undefined;
      if (wait === undefined) throw error;
      await sleep(runtime, wait, signal);
    }
  }
}

/** Lets other work of this thread run between two slices. */
function breathe(context: Host): Promise<void> {
  return new Promise((resolve) => context.runtime.setTimer(0, resolve));
}

/**
 * Reads the nodes that were agreed on before the list's position and are not in the list. A read by id shows whether
 * each was moved or is gone.
 */
async function confirmAbsent(
  context: Rows & Remote & Host & Sync,
  nodeId: string,
  shown: ReadonlySet<string>,
  asOf: number,
  asking: Asking,
): Promise<void> {
  const { metadata } = context;
  await forEachAtOnce(await absentFrom(context, nodeId, shown, asOf), READERS, async (id) => {
    const node = await ask(context, asking, (limit) => context.nodeReader.read(id, limit));
    const known = metadata.nodes.ofNodeId(id);
    if (node !== undefined) context.observer.node(node, "id");
    else if (known !== undefined && isLongGone(context, known)) {
      context.observer.deletion(id, newestRevision(known) + 1, null);
    }
    // Either the node is gone, which the journal tells. Or its id is not found for a moment, perhaps because it is new.
    else metadata.rereads.add(id);
  });
}

/**
 * The ids of the known nodes that the list does not show. Rows are read a page at a time, because a folder with a
 * hundred thousand of them would hold up every other request.
 */
async function absentFrom(
  context: Rows & Host,
  nodeId: string,
  shown: ReadonlySet<string>,
  asOf: number,
): Promise<string[]> {
  const absent: string[] = [];
  for (let last: Below | undefined; ; ) {
    const rows = context.metadata.nodes.belowAfter(nodeId, last, PAGE);
    for (const row of rows) if (!shown.has(row.nodeId) && !isKnownAfter(row.position, asOf)) absent.push(row.nodeId);
    if (rows.length < PAGE) return absent;
    last = rows.at(-1);
    await breathe(context);
  }
}

/**
 * Reads by id the arrivals in the folder that the list does not show, at a gateway without a journal. Such an arrival
 * was in an older list. If it is gone, it must not wait for ever, because the folder would never be empty for programs.
 */
async function confirmWaiting(
  context: Rows & Remote & Host & Sync,
  nodeId: string,
  shown: ReadonlySet<string>,
  asking: Asking,
): Promise<void> {
  const { metadata } = context;
  const absent = metadata.arrivals.idsIn(nodeId).filter((id) => !shown.has(id));
  await forEachAtOnce(absent, READERS, async (id) => {
    const node = await ask(context, asking, (limit) => context.nodeReader.read(id, limit));
    if (node !== undefined) context.observer.node(node, "id");
    else metadata.arrivals.remove(id);
  });
}

/**
 * True: the node counts as gone without a journal's word. Its id has not been found for NOT_FOUND_MS, and it was not
 * changed here. A node that was changed here is kept for the whole settle time.
 */
function isLongGone({ metadata, client, runtime }: Rows & Remote & Host, { nodeId, dirtySince }: NodeRow): boolean {
  if (client.features.isFull || nodeId === null || dirtySince !== null) return false;
  const since = metadata.rereads.missingSince(nodeId);
  return since !== undefined && minus(runtime.now(), since) >= NOT_FOUND_MS;
}

/**
 * The cursor may be ahead of the list, and the entries in between that concern this folder were passed over. They are
 * applied now. The folder becomes complete in the same turn in which list and cursor meet, so no entry can slip
 * through.
 */
async function catchUp(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  nodeId: string,
  asOf: number,
  asking: Asking,
  source: ListSource,
): Promise<void> {
  const { metadata, client } = context;
  let reached = asOf;
  while (client.features.isFull && reached < metadata.settings.getNumber("cursor")) {
    const page = await ask(context, asking, (limit) => source.journal(reached, limit));
    const entries = page.items.filter((entry) => concerns(context, entry, nodeId));
    const missed = await ask(context, asking, (limit) => readMissed(context, entries, limit));
    applyEntries(context, entries, missed);
    readAgain(context, entries, missed, (entry) => isMissed(context, entry));
    const end = endOf(page);
    if (end <= reached) break;
    reached = end;
  }
  metadata.transaction(() => {
    const inode = metadata.inodes.get(folder);
    if (inode !== undefined && inode.listed === null) metadata.inodes.update(folder, { listed: reached });
  });
}

/** True: the entry is about a node in this folder, or about a known node or arrival, which may have left it. */
function concerns({ metadata }: Rows, { parentId, nodeId: id }: JournalEntry, nodeId: string): boolean {
  return parentId === nodeId || metadata.nodes.ofNodeId(id) !== undefined || metadata.arrivals.get(id) !== undefined;
}

/** True: the entry tells of a node that no row has yet. */
const isMissed = ({ metadata }: Rows, { kind, nodeId }: JournalEntry) =>
  kind !== "deleted" && metadata.nodes.ofNodeId(nodeId) === undefined;

/** Like readNews, but also reads nodes without a row, because they are in this folder. */
async function readMissed(context: Rows & Tree & Sync, entries: readonly JournalEntry[], signal: AbortSignal) {
  const nodes = await readNews(context, entries, signal);
  for (const entry of entries) {
    if (!isMissed(context, entry) || !isUnread(nodes.get(entry.nodeId))) continue;
    const node = await context.nodeReader.readOrHidden(entry.nodeId, signal);
    if (node !== undefined) nodes.set(entry.nodeId, node);
  }
  return nodes;
}
