/**
 * Follows the journal from the cursor on, by its stream or in pages, so that remote changes come in. An entry only
 * names a node to look at. The node itself is read by id, because a read by id is never old. The cursor moves once all
 * entries up to it are applied.
 */
import { setMaxListeners } from "node:events";
import { RemoteError } from "../../client/errors.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import { type JournalEntry, knownPosition, type Node } from "../../contract/resources.ts";
import { forEachAtOnce } from "../../lib/at-once.ts";
import { backoff } from "../../lib/backoff.ts";
import { minus, plus } from "../../lib/clocks.ts";
import { inStep, sleep } from "../../lib/runtime.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import { isAfterBase } from "../../metadata/nodes.ts";
import type { Reread } from "../../metadata/rereads.ts";
import { FsError } from "../api/index.ts";
import {
  type Host,
  type Kernel,
  type LocalFiles,
  MANY,
  type Remote,
  type Request,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import { createForgetting, type Tree } from "../tree/index.ts";
import type { JournalStream } from "./journal-stream.ts";
import { observeTogether } from "./observe-batch.ts";

const PAGE = 500;
/** Nodes read by id at the same time. */
export const READERS = 8;
/** Nodes read again in one round. */
const REREADS = 1000;
/**
 * A node that could not be read, or a folder whose list got no answer, waits so long, so that others get their turn.
 */
export const UNREAD_MS = 10_000;
/** The pause between two questions for the index watermark, if no listing tells it. */
const INDEX_MS = 20_000;
/** Pauses between requests to a gateway that does not answer. The first is short: perhaps only one connection broke. */
const OFFLINE_PAUSES = { firstMs: 250, maxMs: 5_000 };
/** A streamed entry may wait for the answer to our own request. The least time between two looks at that. */
const OWN_ANSWER_MS = 20;
/** The least time between two looks at the stream while many requests are under way: most entries are their effects. */
const ECHO_MS = 20;
/** The pause after a round is as long as the round took, but no longer than this. */
const LONG_ROUND_MS = 30_000;

/** The reason with which a pause ends. It is made once, because each new Error collects a stack trace. */
const OVER = new Error("the pause is over");

export interface Follower {
  start(): void;
  /** Resolves when the round under way has ended. Never rejects: a round that failed was logged. */
  stop(): Promise<void>;
}

/**
 * Asks for news and applies it. True: there is more to hear at once. Rejects with a RemoteError or FsError when the
 * gateway does not answer.
 */
export type Hear = (signal: AbortSignal) => Promise<boolean>;

/**
 * The loop of rounds. `hear`: follows the journal, or polls where there is none. `stream`: ends the pause between two
 * rounds when it has news.
 */
export function createLoop(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Sync,
  hear: Hear,
  stream?: JournalStream,
): Follower {
  const { runtime, settings, network, fresh, log } = context;
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal);
  let loop: Promise<void> = Promise.resolve();
  let askedAt = runtime.elapsed();
  const forgetAbandoned = createForgetting(context);
  const isReached = () => network.isOnline && network.loginNeeded === undefined;

  async function run(): Promise<void> {
    /**
     * The gateway did not answer this loop, and the rows that wait for it were not expedited yet. They are expedited
     * only for that, because a request that failed for another reason keeps its own backoff.
     */
    let wasAway = false;
    /** Rounds in a row without an answer. */
    let unanswered = 0;
    while (!stopped.signal.aborted) {
      const begun = runtime.elapsed();
      let isWell = false;
      let isHeard = false;
      try {
        const isMore = await hear(stopped.signal);
        isHeard = true;
        context.observer.forgetEchoes();
        await refreshAll(context, stopped.signal);
        await context.nodeReader.listRemovedFolder(stopped.signal);
        await askForWatermark();
        if (isMore) continue;
        forgetAbandoned();
        isWell = true;
      } catch (error) {
        network.failed(error);
        if (!stopped.signal.aborted) report(error);
      } finally {
        if (!isReached()) wasAway = true;
        else if (wasAway && isHeard) {
          wasAway = false;
          gatewayIsBack(context);
        }
      }
      // A slow gateway is left alone for as long as its answers took.
      const took = Math.min(minus(runtime.elapsed(), begun), LONG_ROUND_MS);
      unanswered = network.isOnline ? 0 : unanswered + 1;
      const rest = network.isOnline ? inStep(runtime, settings.pollMs) : backoff(OFFLINE_PAUSES, unanswered);
      await pause(Math.max(rest, took), isWell);
      await leaveAlone();
    }
  }

  /**
   * Waits out the pause that the gateway asked for on reads of nodes, because without such reads no entry can be
   * applied. Ends early when that pause is lifted.
   */
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

  function report(error: unknown): void {
    const isOfGateway = error instanceof RemoteError || error instanceof FsError;
    if (isOfGateway) fresh.inVain(error.message);
    // The journal is not live then, even if it was heard of a moment ago, or by an earlier token: changes may come now
    // that are not heard of.
    const isRefused = error instanceof RemoteError && error.code === "forbidden";
    if (isOfGateway && (isRefused || !network.isOnline) && fresh.isLive()) fresh.lost(error.message);
    // An account that has lost its role in the workspace gets 404. The question for the workspace shows whether that is
    // so.
    const isUnseen = error instanceof RemoteError && error.code === "notFound" && !context.readOnly.isForRole;
    if (isUnseen) context.background("asking for the workspace", context.quota.look);
    if (isOfGateway) log.debug({ err: error }, "the journal could not be read");
    else log.error({ err: error }, "news of the journal could not be applied");
  }

  /**
   * Waits for news, or until shortly after another flow got no answer, for at most `milliseconds`. After a failed round
   * it waits the full time, so that the gateway is left alone.
   */
  async function pause(milliseconds: number, isWell: boolean): Promise<void> {
    if (!isWell) return sleep(runtime, milliseconds, stopped.signal);
    const over = new AbortController();
    const stop = () => over.abort();
    stopped.signal.addEventListener("abort", stop, { once: true });
    const news = [
      askAgain(over.signal),
      woken(() => context.nodeReader.isRelistDue() || context.timeline.isRolledBack(), over.signal),
    ];
    if (stream !== undefined) news.push(newsOf(stream, over.signal));
    if (stream !== undefined && stream.entries.length > 0) news.push(goOn(over.signal));
    await Promise.race([sleep(runtime, milliseconds, over.signal), ...news]);
    stopped.signal.removeEventListener("abort", stop);
    over.abort(OVER);
  }

  /** News that comes after the pause has ended is left for the next pause. */
  async function newsOf(journal: JournalStream, signal: AbortSignal): Promise<void> {
    if (context.sending.size >= MANY) await sleep(runtime, ECHO_MS, signal);
    if (!signal.aborted) await journal.news(signal);
  }

  /**
   * A streamed entry that waits for the answer to our own request goes on once there is progress. The fixed wait comes
   * first, because programs cause progress all the time.
   */
  async function goOn(signal: AbortSignal): Promise<void> {
    await sleep(runtime, OWN_ANSWER_MS, signal);
    await context.activity.nextProgress(signal);
  }

  /** Resolves shortly after the gateway left a request without an answer, or when the signal aborts. */
  async function askAgain(signal: AbortSignal): Promise<void> {
    await woken(() => !network.isOnline, signal);
    await sleep(runtime, OFFLINE_PAUSES.firstMs, signal);
  }

  /** Resolves when the loops are woken and `isSo` holds, or when the signal aborts. */
  function woken(isSo: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (isSo()) resolve();
      };
      const end = context.activity.onWake(look);
      signal.addEventListener("abort", () => resolve(void end()), { once: true });
    });
  }

  /**
   * Asks for the index watermark. When every folder is known, nothing is listed, so no list tells the watermark. Then
   * tombstones would stay for ever, and writes would never count as settled.
   */
  async function askForWatermark(): Promise<void> {
    const { metadata } = context;
    const { settings: known, tombstones } = metadata;
    if (minus(runtime.elapsed(), askedAt) < INDEX_MS) return;
    askedAt = runtime.elapsed();
    const isBehind = known.getNumber("indexed") < known.getNumber("written");
    if (!isBehind && !tombstones.isAnyUpTo(known.getNumber("cursor"))) return;
    if (!OPERATIONS.listNodes.scopes.every((scope) => network.may(scope)) || network.pauseMs("listNodes") > 0) return;
    await context.shown.ask(stopped.signal);
    metadata.transaction(() => context.shown.forgetDeletions());
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

/** The gateway answers again: rows and requests that wait are due now. */
function gatewayIsBack(context: Uploads & Host): void {
  context.log.info({}, "the gateway answers again");
  context.activity.expedite();
}

/** Asks for one page of the journal and applies it. True: there is more. Rejects with a RemoteError. */
export async function followOnce(
  context: Rows & Kernel & Remote & Uploads & Host & Tree & Sync,
  signal: AbortSignal,
): Promise<boolean> {
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

/** Applies the entries after the cursor, and moves the cursor to `end`. Rejects with the RemoteError of a read. */
export async function follow(
  context: Rows & Kernel & Remote & Uploads & Host & Tree & Sync,
  entries: readonly JournalEntry[],
  end: number,
  signal: AbortSignal,
): Promise<void> {
  const { metadata } = context;
  const nodes: News = new Map();
  // Another flow may have turned an entry into news since the last look. Example: it listed the entry's folder to the
  // end.
  while (unreadNews(context, entries, nodes).length > 0) await readInto(nodes, context, entries, signal);
  // After a crash before the cursor moves, the entries are applied twice. The second time they are no news.
  applyEntries(context, entries, nodes);
  noticeFolders(context, entries);
  // From the last look for news up to here there is no await. An entry in an unknown folder was passed over. The flow
  // that makes the folder known (a list, or the answer to its creation) makes up for entries before the cursor. If it
  // ran in between, it would find the cursor before the entry and leave the entry to this flow.
  metadata.transaction(() => {
    readAgain(context, entries, nodes);
    // Late entries are not the end of the journal.
    if (end > metadata.settings.getNumber("cursor")) context.timeline.noteFollowed(entries);
    metadata.settings.set("cursor", String(end));
    context.shown.forgetDeletions();
  });
  context.activity.progressed();
}

/** Entries in a folder that was not listed are passed over, but a program may watch that folder. */
function noticeFolders(context: Kernel & Tree, entries: readonly JournalEntry[]): void {
  for (const parentId of new Set(entries.map((entry) => entry.parentId))) {
    const folder = parentId === null ? undefined : context.nodeRows.folderOfNode(parentId);
    if (folder !== undefined) context.replays.mayBeWatched(folder);
  }
}

type NodeNews = Node | "hidden" | "gone";
/**
 * The nodes that were read, by id. "gone": the id answers 404. "hidden": the account may not read the node, or the
 * gateway fails to tell of it.
 */
type News = Map<string, NodeNews>;

/** Reads the nodes of the entries that are news. Rejects with a RemoteError. */
export async function readNews(
  context: Rows & Tree & Sync,
  entries: readonly JournalEntry[],
  signal: AbortSignal,
): Promise<News> {
  const nodes: News = new Map();
  await readInto(nodes, context, entries, signal);
  return nodes;
}

/** Reads until no news is unread: other nodes may come in during a read, and entries of theirs become news. */
async function readInto(
  nodes: News,
  context: Rows & Tree & Sync,
  entries: readonly JournalEntry[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const wanted = unreadNews(context, entries, nodes);
    if (wanted.length === 0) return;
    await forEachAtOnce(wanted, READERS, async (id) => {
      nodes.set(id, (await readNewsOf(context, id, signal)) ?? "gone");
    });
  }
}

/** A node of which the gateway fails to tell must not hold up the others: it counts as hidden, and is read again. */
function readNewsOf(context: Sync, id: string, signal: AbortSignal): Promise<NodeNews | undefined> {
  return context.nodeReader.readOrHidden(id, signal).catch((error: unknown) => {
    if (context.nodeReader.isUntellable(error)) return "hidden";
    throw error;
  });
}

/** The ids of the nodes that are news and were not read yet. */
function unreadNews(context: Rows & Tree, entries: readonly JournalEntry[], nodes: News): string[] {
  const unread = entries.filter((entry) => !nodes.has(entry.nodeId) && isNews(context, entry));
  return [...new Set(unread.map(({ nodeId }) => nodeId))];
}

/** True: the node was not asked for, or was not found. */
export const isUnread = (node: NodeNews | undefined) => node === undefined || node === "gone";

function isNews(context: Rows & Tree, entry: JournalEntry): boolean {
  const { metadata } = context;
  if (entry.kind === "deleted") return false;
  const own = entry.key == null ? undefined : metadata.attempts.ofKey(entry.key);
  if (own !== undefined) return own.state === "abandoned" || isTakenFromJournal(own, entry.nodeId);
  const row = metadata.nodes.ofNodeId(entry.nodeId);
  if (row === undefined) return metadata.arrivals.get(entry.nodeId) !== undefined || isWanted(context, entry);
  return isAfterBase(row, entry.revision);
}

/** True: a node without a row is news, because its folder counts as complete here. */
function isWanted(context: Rows & Tree, entry: JournalEntry): boolean {
  const tombstone = context.metadata.tombstones.get(entry.nodeId);
  if (tombstone !== undefined && entry.revision <= tombstone.revision) return false;
  if (entry.parentId === null) return false;
  const row = context.metadata.nodes.ofNodeId(entry.parentId);
  // A folder that was removed here was complete. A new node in it brings it back.
  if (row?.kind === "folder" && row.entry === null) return true;
  const folder = context.nodeRows.folderOfNode(entry.parentId);
  return folder !== undefined && context.metadata.inodes.get(folder)?.listed != null;
}

/**
 * Marks nodes with news whose ids answered 404 for a later read. Either the node was deleted since, which the journal
 * has yet to tell, or its id is not found yet. Call it after the entries were applied. `isNewsToo`: true for entries
 * that are news to the caller alone.
 */
export function readAgain(
  context: Rows & Tree,
  entries: readonly JournalEntry[],
  nodes: News,
  isNewsToo: (entry: JournalEntry) => boolean = () => false,
): void {
  for (const entry of entries) {
    if (isUnread(nodes.get(entry.nodeId)) && (isNewsToo(entry) || isNews(context, entry))) readLater(context, entry);
  }
}

function readLater({ metadata }: Rows, { kind, nodeId, parentId, revision }: JournalEntry): void {
  metadata.rereads.add(nodeId, parentId);
  if (kind === "deleted") return;
  // The entry is later than the known deletion, so the node was restored, and 404 does not confirm the deletion.
  const deletion = metadata.tombstones.get(nodeId);
  if (deletion !== undefined && deletion.revision < revision) metadata.tombstones.remove(nodeId);
}

/** Applies the entries in the order of the journal, so that a name is left before another node takes it. */
export function applyEntries(
  context: Rows & Uploads & Host & Tree & Sync,
  entries: readonly JournalEntry[],
  nodes: News,
): void {
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
      // One node must not keep the journal from being followed. It is read again by itself.
      context.log.error({ err: error, entry }, "a change could not be applied");
      readLater(context, entry);
    }
  }
}

function applyEntry(context: Rows & Uploads & Sync, entry: JournalEntry, node: NodeNews | undefined): void {
  context.shown.confirmByJournal(entry);
  // A deletion needs no read, and earlier states can no longer be read.
  if (entry.kind === "deleted") {
    context.observer.deletion(entry.nodeId, entry.revision, entry.position);
    return;
  }
  if (node === "hidden") {
    readLater(context, entry);
    return;
  }
  if (node === undefined || node === "gone") return;
  if (!commitOwnSnapshot(context, entry, node)) context.observer.node(node, "id");
  // If the node was moved into a folder that is not known here, a reread also reads that folder.
  const { nodes, rereads } = context.metadata;
  if (node.parentId === null || nodes.ofNodeId(node.parentId) !== undefined) return;
  if (nodes.ofNodeId(node.id) !== undefined) rereads.add(node.id);
}

/**
 * True: the effect of the attempt is taken from the journal, without waiting for its answer. After a lost answer, the
 * next one may be long in coming. And before the answer to a creation, a foreign change of the new node would look like
 * news of an unknown node. An exchange is acknowledged for both nodes by the row that sent it.
 */
function isTakenFromJournal({ tries, request }: Attempt<Request>, nodeId: string): boolean {
  if (request.do === "exchange" && request.with === nodeId) return false;
  return tries > 0 || !("nodeId" in request);
}

/**
 * Acknowledges the request of ours that made the change, if it was not answered yet or was abandoned. Foreign changes
 * on top of it are news. Returns true if nothing more is to be observed.
 */
function commitOwnSnapshot(context: Rows & Uploads & Sync, { key, position }: JournalEntry, node: Node): boolean {
  const own = key == null ? undefined : context.metadata.attempts.ofKey(key);
  if (key == null || own === undefined) return false;
  if (own.state === "abandoned") return context.observer.recognizeOwn(node, key);
  if (!isTakenFromJournal(own, node.id)) return false;
  // The request was sent again, and may still be reading a snapshot that is no longer needed.
  if (own.tries > 0) context.sending.get(own.id)?.();
  context.answers.acknowledge(own, node, knownPosition(position));
  return true;
}

/** Reads marked nodes again, several at a time. Stops and rejects at the first failure that is not about one node. */
async function refreshAll(context: Rows & Host & Sync, signal: AbortSignal): Promise<void> {
  const { metadata, runtime } = context;
  const due = metadata.rereads.due(runtime.now(), REREADS);
  await forEachAtOnce(due, READERS, (reread) => refreshOne(context, reread, signal));
}

async function refreshOne(context: Rows & Host & Sync, reread: Reread, signal: AbortSignal): Promise<void> {
  const { metadata, runtime, log } = context;
  try {
    await context.nodeReader.refresh(reread, signal);
  } catch (error) {
    if (error instanceof RemoteError && error.code === "forbidden") {
      context.nodeReader.notVisible(reread);
      log.warn({ err: error, nodeId: reread.nodeId }, "a node may not be read");
      return;
    }
    if (context.nodeReader.isUntellable(error)) {
      context.nodeReader.askMoreSeldom(reread);
      log.warn({ err: error, nodeId: reread.nodeId }, "the gateway does not tell of a node");
      return;
    }
    metadata.rereads.postpone(reread, plus(runtime.now(), UNREAD_MS));
    throw error;
  }
}
