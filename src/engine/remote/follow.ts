/**
 * Remote changes come in: follows the journal from the cursor on, as it is streamed or in pages. An
 * entry only says which node to look at; the node itself is read by id, which is never old. The cursor
 * moves after everything up to it was applied.
 */
import { setMaxListeners } from "node:events";
import { RemoteError } from "../../client/errors.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import type { JournalEntry, Node } from "../../contract/resources.ts";
import { forEachAtOnce } from "../../lib/at-once.ts";
import { backoff } from "../../lib/backoff.ts";
import { inStep, sleep } from "../../lib/runtime.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { Reread } from "../../metadata/rereads.ts";
import { FsError } from "../api/index.ts";
import {
  type Context,
  type Host,
  inBackground,
  isRolledBack,
  type Kernel,
  MANY,
  noteHistoryPoint,
  type Remote,
  type Request,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import {
  acknowledge,
  askIndexWatermark,
  askMoreSeldom,
  confirmByJournal,
  forgetDeletions,
  forgetEchoes,
  isRelistDue,
  isUntellable,
  listRemovedFolder,
  newestRevision,
  notVisible,
  observeDeletion,
  observeNode,
  readOrHidden,
  recognizeOwn,
  refreshNode,
} from "../sync/index.ts";
import { createForgetting, folderOfNode } from "../tree/index.ts";
import type { JournalStream } from "./journal-stream.ts";
import { observeTogether } from "./observe-batch.ts";

const PAGE = 500;
/** Nodes read by id at the same time. */
export const READERS = 8;
/** Nodes read again in one go. */
const REREADS = 1000;
/** A node that could not be read waits at least so long, so that the others have their turn. */
const FAILED_MS = 10_000;
/** Between two questions how far the index shows, where no listing tells. */
const INDEX_MS = 20_000;
/** Between questions to a gateway that does not answer. The first is soon: it may have been one connection that broke. */
const OFFLINE_PAUSES = { firstMs: 250, maxMs: 5_000 };
/** Between two looks whether what came by the stream still waits for an answer of our own. */
const HELD_MS = 20;
/** While many requests are under way, what comes is for the most part what they did: it is heard of at most so often. */
const ECHO_MS = 20;
/** Between two rounds at most so long, however long one took. */
const LONG_ROUND_MS = 30_000;

/** Why a pause ends: one that is made each time looks for its place in the program each time. */
const OVER = new Error("the pause is over");

export interface Follower {
  start(): void;
  stop(): Promise<void>;
}

/** Asks for what is new; true when there is more to hear at once. */
export type Hear = (context: Context, signal: AbortSignal) => Promise<boolean>;

/** `hear`: follows the journal, or whatever does its work where there is no journal. `stream`: what tells of news between two rounds. */
export function createFollower(context: Context, hear: Hear, stream?: JournalStream): Follower {
  const { runtime, settings, network, fresh, log } = context;
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal);
  let loop: Promise<void> = Promise.resolve();
  let askedAt = runtime.elapsed();
  const forgetAbandoned = createForgetting(context);
  const isReached = () => network.isOnline && network.loginNeeded === undefined;

  async function run(): Promise<void> {
    /** It did not answer this, and who waits was not told since that it does. Who had no answer otherwise has his own time. */
    let wasAway = false;
    /** So often in a row it was asked in vain. */
    let inVain = 0;
    while (!stopped.signal.aborted) {
      const begun = runtime.elapsed();
      let isWell = false;
      let isHeard = false;
      try {
        const isMore = await hear(context, stopped.signal);
        isHeard = true;
        forgetEchoes(context);
        await refreshAll(context, stopped.signal);
        await listRemovedFolder(context, stopped.signal);
        await passIndex();
        if (isMore) continue;
        forgetAbandoned();
        isWell = true;
      } catch (error) {
        network.failed(error);
        if (!stopped.signal.aborted) complain(error);
      } finally {
        if (!isReached()) wasAway = true;
        else if (wasAway && isHeard) {
          wasAway = false;
          comeBack(context);
        }
      }
      // A gateway that takes long is left alone as long as it was asked.
      const took = Math.min(runtime.elapsed() - begun, LONG_ROUND_MS);
      inVain = network.isOnline ? 0 : inVain + 1;
      const rest = network.isOnline ? inStep(runtime, settings.pollMs) : backoff(OFFLINE_PAUSES, inVain);
      await pause(Math.max(rest, took), isWell);
      await leaveAlone();
    }
  }

  /** For as long as the gateway asked for it when nodes were read, without which nothing is news; less, where somebody wants it asked. */
  async function leaveAlone(): Promise<void> {
    const pauseMs = network.pauseMs("getNode");
    if (pauseMs === 0) return;
    const over = new AbortController();
    const stop = () => over.abort();
    stopped.signal.addEventListener("abort", stop, { once: true });
    await Promise.race([
      sleep(runtime, pauseMs, over.signal),
      woken(() => network.pauseMs("getNode") === 0, over.signal),
    ]);
    stopped.signal.removeEventListener("abort", stop);
    over.abort(OVER);
  }

  function complain(error: unknown): void {
    const isOfGateway = error instanceof RemoteError || error instanceof FsError;
    if (isOfGateway) fresh.inVain(error.message);
    // Whatever was heard a moment ago, or by the token before: there may be something to tell that nobody hears now.
    const isRefused = error instanceof RemoteError && error.code === "forbidden";
    if (isOfGateway && (isRefused || !network.isOnline) && fresh.isLive()) fresh.lost(error.message);
    // Whoever has no role in the workspace any more is told that there is none.
    const isUnseen = error instanceof RemoteError && error.code === "notFound" && !context.readOnly.isForRole;
    if (isUnseen) inBackground(context, "asking for the workspace", context.quota.look);
    if (isOfGateway) log.debug({ err: error }, "the journal could not be read");
    else log.error({ err: error }, "what the journal tells could not be taken in");
  }

  /** Until there is news, or soon after somebody else had no answer, but no longer. A gateway that fails is left alone. */
  async function pause(milliseconds: number, isWell: boolean): Promise<void> {
    if (!isWell) return sleep(runtime, milliseconds, stopped.signal);
    const over = new AbortController();
    const stop = () => over.abort();
    stopped.signal.addEventListener("abort", stop, { once: true });
    const news = [askAgain(over.signal), woken(() => isRelistDue(context) || isRolledBack(context), over.signal)];
    if (stream !== undefined) news.push(newsOf(stream, over.signal));
    if (stream !== undefined && stream.entries.length > 0) news.push(goOn(over.signal));
    await Promise.race([sleep(runtime, milliseconds, over.signal), ...news]);
    stopped.signal.removeEventListener("abort", stop);
    over.abort(OVER);
  }

  /** News that nobody waits for any more is left for the next pause. */
  async function newsOf(journal: JournalStream, signal: AbortSignal): Promise<void> {
    if (context.sending.size >= MANY) await sleep(runtime, ECHO_MS, signal);
    if (!signal.aborted) await journal.news(signal);
  }

  /** What came and waits for an answer of our own goes on with that; programs make progress all the time. */
  async function goOn(signal: AbortSignal): Promise<void> {
    await sleep(runtime, HELD_MS, signal);
    await context.activity.nextProgress(signal);
  }

  /** Resolves when the gateway has not answered somebody, and may do so again; or when the signal aborts. */
  async function askAgain(signal: AbortSignal): Promise<void> {
    await woken(() => !network.isOnline, signal);
    await sleep(runtime, OFFLINE_PAUSES.firstMs, signal);
  }

  /** Resolves when somebody wakes the loops and this is so, or when the signal aborts. */
  function woken(isSo: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (isSo()) resolve();
      };
      const end = context.activity.onWake(look);
      signal.addEventListener("abort", () => resolve(void end()), { once: true });
    });
  }

  /** Where every folder is known nobody lists: without this, deletions would be remembered, and what was written not be settled, for ever. */
  async function passIndex(): Promise<void> {
    const { metadata } = context;
    const { settings: known, tombstones } = metadata;
    if (runtime.elapsed() - askedAt < INDEX_MS) return;
    askedAt = runtime.elapsed();
    const isBehind = known.getNumber("indexed") < known.getNumber("written");
    if (!isBehind && !tombstones.isAnyUpTo(known.getNumber("cursor"))) return;
    if (!OPERATIONS.listNodes.scopes.every((scope) => network.may(scope)) || network.pauseMs("listNodes") > 0) return;
    await askIndexWatermark(context, stopped.signal);
    metadata.transaction(() => forgetDeletions(context));
  }

  return {
    start() {
      loop = run();
    },
    async stop() {
      stopped.abort();
      await loop;
    },
  };
}

/** The gateway answers again: nothing waits for its backoff. */
function comeBack(context: Uploads & Host): void {
  context.log.info({}, "the gateway answers again");
  context.activity.expedite();
}

/** Asks for one page of the journal and applies it. True when there is more. */
export async function followOnce(context: Context, signal: AbortSignal): Promise<boolean> {
  const { client, metadata, network, workspace, fresh } = context;
  const cursor = metadata.settings.getNumber("cursor");
  const asked = fresh.asking();
  const page = await client.readJournal(workspace.id, cursor, { pageSize: PAGE, signal });
  network.answered();
  fresh.heard();
  if (page.items.length > 0) fresh.came();
  // A gateway may allow smaller pages than were asked for.
  const isFull = page.items.length >= PAGE || page.items.length < page.totalCount;
  const end = isFull
    ? (page.items.at(-1)?.position ?? cursor)
    : Math.max(page.asOf, page.items.at(-1)?.position ?? cursor);
  if (end > cursor) await follow(context, page.items, end, signal);
  fresh.applied(true);
  const isMore = isFull && end > cursor;
  if (!isMore) fresh.caughtUp(asked);
  return isMore;
}

/** Applies what the journal tells after the cursor, which is at `end` then. */
export async function follow(
  context: Context,
  entries: readonly JournalEntry[],
  end: number,
  signal: AbortSignal,
): Promise<void> {
  const { metadata } = context;
  const nodes: News = new Map();
  // Who had his turn since the last look (a folder was listed to its end) may have made news of what was none.
  while (unreadNews(context, entries, nodes).length > 0) await readInto(nodes, context, entries, signal);
  // Applied twice after a crash in between, they say nothing new.
  applyEntries(context, entries, nodes);
  noticeFolders(context, entries);
  // Without a wait: what was passed over here is made up for by whoever finds the cursor past it (a list, the
  // answer to a birth), and who looks in between would find that nothing was.
  metadata.transaction(() => {
    readAgain(context, entries, nodes);
    // What came late is not where the gateway's past ends.
    if (end > metadata.settings.getNumber("cursor")) noteHistoryPoint(context, entries);
    metadata.settings.set("cursor", String(end));
    forgetDeletions(context);
  });
  context.activity.progressed();
}

/** What is new in a folder that nobody has looked into was passed over; somebody may watch it all the same. */
function noticeFolders(context: Rows & Kernel, entries: readonly JournalEntry[]): void {
  for (const parentId of new Set(entries.map((entry) => entry.parentId))) {
    const folder = parentId === null ? undefined : folderOfNode(context, parentId);
    if (folder !== undefined) context.replays.mayBeWatched(folder);
  }
}

type Told = Node | "hidden" | "gone";
/** By their ids all nodes that were asked for. One whose id answers 404 is gone, one that may not or cannot be read is hidden. */
export type News = Map<string, Told>;

/** Reads the nodes the entries tell news of. */
export async function readNews(
  context: Rows & Remote,
  entries: readonly JournalEntry[],
  signal: AbortSignal,
): Promise<News> {
  const nodes: News = new Map();
  await readInto(nodes, context, entries, signal);
  return nodes;
}

/** While some are read others may come in, of which they are news then. */
async function readInto(
  nodes: News,
  context: Rows & Remote,
  entries: readonly JournalEntry[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const wanted = unreadNews(context, entries, nodes);
    if (wanted.length === 0) return;
    await forEachAtOnce(wanted, READERS, async (id) => {
      nodes.set(id, (await readTold(context, id, signal)) ?? "gone");
    });
  }
}

/** One of which the gateway fails to tell does not keep the others from being heard of: it is read again by itself. */
function readTold(context: Rows & Remote, id: string, signal: AbortSignal): Promise<Told | undefined> {
  return readOrHidden(context, id, signal).catch((error: unknown) => {
    if (isUntellable(context, error)) return "hidden";
    throw error;
  });
}

/** Their ids. */
function unreadNews(context: Rows & Remote, entries: readonly JournalEntry[], nodes: News): string[] {
  const unread = entries.filter((entry) => !nodes.has(entry.nodeId) && isNews(context, entry));
  return [...new Set(unread.map(({ nodeId }) => nodeId))];
}

/** Not known: not asked for, or not found. */
export const isUnread = (node: Told | undefined) => node === undefined || node === "gone";

function isNews(context: Rows & Remote, entry: JournalEntry): boolean {
  const { metadata, client } = context;
  // Whether that was before or after what is known only its id can say, where revisions do not.
  if (entry.kind === "deleted" && client.features.revisions) return false;
  const own = entry.key == null ? undefined : metadata.attempts.ofKey(entry.key);
  if (own !== undefined) return own.state === "abandoned" || isAwaited(own, entry.nodeId);
  const row = metadata.nodes.ofNodeId(entry.nodeId);
  if (row === undefined) return metadata.arrivals.get(entry.nodeId) !== undefined || isWanted(context, entry);
  if (client.features.revisions) return entry.revision > (row.base?.revision ?? -1);
  // Up to our last write its answer showed all there was.
  return entry.position > (row.base?.position ?? 0);
}

/** A node without a row matters when its folder's listing is, or is becoming, complete without it. */
function isWanted(context: Rows & Remote, entry: JournalEntry): boolean {
  const tombstone = context.metadata.tombstones.get(entry.nodeId);
  if (context.client.features.revisions && tombstone !== undefined && entry.revision <= tombstone.revision)
    return false;
  if (entry.parentId === null) return false;
  const row = context.metadata.nodes.ofNodeId(entry.parentId);
  // A folder removed here was completely known: what is new in it keeps it.
  if (row?.kind === "folder" && row.entry === null) return true;
  const folder = folderOfNode(context, entry.parentId);
  return folder !== undefined && context.metadata.inodes.get(folder)?.listed != null;
}

/** News of a node whose id answers 404: deleted since, which the journal has yet to tell, or not to be found yet. */
export function readAgain(context: Rows & Remote, entries: readonly JournalEntry[], nodes: News): void {
  for (const entry of entries) {
    if (entry.kind !== "deleted" && isUnread(nodes.get(entry.nodeId)) && isNews(context, entry))
      context.metadata.rereads.add(entry.nodeId, entry.parentId);
  }
}

/** In the order of the journal, so that a name is left before it is taken. */
export function applyEntries(context: Context, entries: readonly JournalEntry[], nodes: News): void {
  observeTogether(
    context,
    [...nodes.values()].flatMap((node) => (typeof node === "string" ? [] : node)),
    "id",
  );
  for (const entry of entries) {
    try {
      context.metadata.transaction(() => applyEntry(context, entry, nodes.get(entry.nodeId)));
      context.runtime.step("journal: entry applied");
    } catch (error) {
      // One node must not keep the journal from being followed: it is read again by itself.
      context.log.error({ err: error, entry }, "a change could not be applied");
      context.metadata.rereads.add(entry.nodeId, entry.parentId);
    }
  }
}

function applyEntry(context: Context, entry: JournalEntry, node: Told | undefined): void {
  confirmByJournal(context, entry);
  // Says all there is: whatever came before it could not be read.
  if (entry.kind === "deleted" && context.client.features.revisions) {
    observeDeletion(context, entry.nodeId, entry.revision, entry.position);
    return;
  }
  if (node === "hidden") {
    context.metadata.rereads.add(entry.nodeId, entry.parentId);
    return;
  }
  if (entry.kind === "deleted") {
    const { nodes, arrivals, attempts, rereads } = context.metadata;
    const row = nodes.ofNodeId(entry.nodeId);
    const isOwn = entry.key != null && attempts.ofKey(entry.key) !== undefined;
    if (row === undefined ? arrivals.get(entry.nodeId) === undefined : entry.position <= (row.base?.position ?? 0))
      return;
    // It came in after the others were read, and may have been restored before that.
    if (node === undefined && !isOwn) rereads.add(entry.nodeId, entry.parentId);
    // Gone, it must not go on waiting for its name. One that is there again the journal tells of next.
    else if (row === undefined && node === "gone") arrivals.remove(entry.nodeId);
    else if (row === undefined) return;
    else if (node === undefined || node === "gone")
      observeDeletion(context, entry.nodeId, newestRevision(row) + 1, entry.position);
    else observeNode(context, node, "id");
    return;
  }
  if (node === undefined || node === "gone") return;
  if (!commitOwnSnapshot(context, entry, node)) observeNode(context, node, "id");
  // Moved below a folder nobody here knows: the folder is looked up first.
  const { nodes, rereads } = context.metadata;
  if (node.parentId === null || nodes.ofNodeId(node.parentId) !== undefined) return;
  if (nodes.ofNodeId(node.id) !== undefined) rereads.add(node.id);
}

/**
 * The answer that is on its way says the same as the journal. One that was lost may be long in coming,
 * and until a birth is answered what somebody does to the new node would be news of a stranger's. Of
 * two that were exchanged, the one whose request it is settles both.
 */
function isAwaited({ tries, request }: Attempt<Request>, nodeId: string): boolean {
  if (request.do === "exchange" && request.with === nodeId) return false;
  return tries > 0 || !("nodeId" in request);
}

/** The change is one of ours that was not answered, or given up. Whatever somebody has done on top of it is news. */
function commitOwnSnapshot(context: Context, { key, position }: JournalEntry, node: Node): boolean {
  const own = key == null ? undefined : context.metadata.attempts.ofKey(key);
  if (key == null || own === undefined) return false;
  if (own.state === "abandoned") return recognizeOwn(context, node, key);
  if (!isAwaited(own, node.id)) return false;
  // Sent again, it may still be reading the bytes that are no longer needed.
  if (own.tries > 0) context.sending.get(own.id)?.();
  acknowledge(context, own, node, position);
  return true;
}

/** What did not fit together is read again by id, several at a time. The first failure that is not one node's ends it. */
async function refreshAll(context: Context, signal: AbortSignal): Promise<void> {
  const { metadata, runtime } = context;
  const due = metadata.rereads.due(runtime.now(), REREADS);
  await forEachAtOnce(due, READERS, (reread) => refreshOne(context, reread, signal));
}

async function refreshOne(context: Context, reread: Reread, signal: AbortSignal): Promise<void> {
  const { metadata, runtime, log } = context;
  try {
    await refreshNode(context, reread, signal);
  } catch (error) {
    if (error instanceof RemoteError && error.code === "forbidden") {
      notVisible(context, reread);
      log.warn({ err: error, nodeId: reread.nodeId }, "a node may not be read");
      return;
    }
    if (isUntellable(context, error)) {
      askMoreSeldom(context, reread);
      log.warn({ err: error, nodeId: reread.nodeId }, "the gateway does not tell of a node");
      return;
    }
    metadata.rereads.postpone(reread, runtime.now() + FAILED_MS);
    throw error;
  }
}
