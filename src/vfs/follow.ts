/**
 * Remote changes come in: follows the journal from the cursor on. An entry only says which node to
 * look at; the node itself is read by id, which is never old. The cursor moves after everything up
 * to it was applied.
 */
import { setMaxListeners } from "node:events";
import { RemoteError } from "../client/errors.ts";
import type { JournalEntry, Node } from "../contract/resources.ts";
import { sleep } from "../lib/runtime.ts";
import type { Context } from "./context.ts";
import { readNode, refreshNode } from "./fetch-node.ts";
import { folderOfNode } from "./from-node.ts";
import { lookInside } from "./look-inside.ts";
import { observeDeletion, observeNode } from "./observe.ts";

const PAGE = 500;
/** Nodes read by id at the same time. */
const READERS = 8;
/** Nodes read again in one go. */
const REREADS = 1000;
/** A node that may not be read is asked for at most this seldom. */
const HIDDEN_MS = 60_000;
/** While the gateway does not answer, it is asked at most this seldom. */
const OFFLINE_POLL_MS = 5_000;

export interface Follower {
  start(): void;
  stop(): Promise<void>;
}

export function createFollower(context: Context): Follower {
  const { runtime, settings, network, log } = context;
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal);
  let loop: Promise<void> = Promise.resolve();

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      const wasOnline = network.isOnline && network.loginNeeded === undefined;
      try {
        const isMore = await followOnce(context, stopped.signal);
        await refreshAll(context, stopped.signal);
        await lookInside(context, stopped.signal);
        if (!wasOnline) comeBack(context);
        if (isMore) continue;
      } catch (error) {
        network.failed(error);
        if (!stopped.signal.aborted) log.debug({ err: error }, "the journal could not be read");
      }
      await sleep(
        runtime,
        network.isOnline ? settings.pollMs : Math.max(settings.pollMs, OFFLINE_POLL_MS),
        stopped.signal,
      );
    }
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
function comeBack(context: Context): void {
  context.log.info({}, "the gateway answers again");
  context.metadata.attempts.rush(context.runtime.now());
  context.activity.wake();
}

/** Applies one page of the journal. True when there is more. */
export async function followOnce(context: Context, signal: AbortSignal): Promise<boolean> {
  const { client, metadata, network, workspace } = context;
  const cursor = metadata.settings.getNumber("cursor");
  const page = await client.readJournal(workspace.id, cursor, { pageSize: PAGE, signal });
  network.answered();
  const isFull = page.items.length >= PAGE;
  const end = isFull
    ? (page.items.at(-1)?.position ?? cursor)
    : Math.max(page.asOf, page.items.at(-1)?.position ?? cursor);
  if (end <= cursor) return false;
  const nodes = await readNews(context, page.items, signal);
  // Applied twice after a crash in between, they say nothing new.
  applyEntries(context, page.items, nodes);
  metadata.transaction(() => {
    readAgain(context, page.items, nodes);
    metadata.settings.set("cursor", String(end));
    metadata.tombstones.forgetUpTo(Math.min(end, metadata.settings.getNumber("indexed")));
  });
  context.activity.progressed();
  return isFull;
}

/** Reads the nodes the entries tell news of. One whose id answers 404 has no value. */
export async function readNews(
  context: Context,
  entries: readonly JournalEntry[],
  signal: AbortSignal,
): Promise<Map<string, Node>> {
  const wanted = [...new Set(entries.filter((entry) => isNews(context, entry)).map((entry) => entry.nodeId))];
  const nodes = new Map<string, Node>();
  async function reader(): Promise<void> {
    for (let id = wanted.pop(); id !== undefined; id = wanted.pop()) {
      const node = await readNode(context, id, signal);
      if (node !== undefined) nodes.set(id, node);
    }
  }
  await Promise.all(Array.from({ length: Math.min(READERS, wanted.length) }, reader));
  return nodes;
}

function isNews(context: Context, entry: JournalEntry): boolean {
  if (entry.kind === "deleted") return false;
  const { metadata } = context;
  const own = entry.key == null ? undefined : metadata.attempts.ofKey(entry.key);
  // The answer to our own request says the same, sooner or later; to one that was given up there is none.
  if (own !== undefined) return own.state === "abandoned";
  const row = metadata.nodes.ofNodeId(entry.nodeId);
  if (row === undefined) return isWanted(context, entry);
  return entry.revision > (row.base?.revision ?? -1);
}

/** A node without a row matters when its folder's listing is, or is becoming, complete without it. */
function isWanted(context: Context, entry: JournalEntry): boolean {
  const tombstone = context.metadata.tombstones.get(entry.nodeId);
  if (tombstone !== undefined && entry.revision <= tombstone.revision) return false;
  if (entry.parentId === null) return false;
  const row = context.metadata.nodes.ofNodeId(entry.parentId);
  // A folder removed here was completely known: what is new in it keeps it.
  if (row?.kind === "folder" && row.entry === null) return true;
  const folder = folderOfNode(context, entry.parentId);
  return folder !== undefined && context.metadata.inodes.get(folder)?.listed != null;
}

/** News of a node whose id answers 404: deleted since, which the journal has yet to tell, or not to be found yet. */
export function readAgain(context: Context, entries: readonly JournalEntry[], nodes: ReadonlyMap<string, Node>): void {
  for (const entry of entries) {
    if (!nodes.has(entry.nodeId) && isNews(context, entry)) context.metadata.rereads.add(entry.nodeId);
  }
}

/** In the order of the journal, so that a name is left before it is taken. */
export function applyEntries(context: Context, entries: readonly JournalEntry[], nodes: Map<string, Node>): void {
  for (const entry of entries) {
    try {
      context.metadata.transaction(() => applyEntry(context, entry, nodes.get(entry.nodeId)));
    } catch (error) {
      // One node must not keep the journal from being followed: it is read again by itself.
      context.log.error({ err: error, entry }, "a change could not be applied");
      context.metadata.rereads.add(entry.nodeId);
    }
  }
}

function applyEntry(context: Context, entry: JournalEntry, node: Node | undefined): void {
  if (entry.kind === "deleted") {
    observeDeletion(context, entry.nodeId, entry.revision, entry.position);
    return;
  }
  if (node === undefined) return;
  observeNode(context, node);
  // Moved below a folder nobody here knows: the folder is looked up first.
  const { nodes, rereads } = context.metadata;
  if (node.parentId === null || nodes.ofNodeId(node.parentId) !== undefined) return;
  if (nodes.ofNodeId(node.id) !== undefined) rereads.add(node.id);
}

/** What did not fit together is read again by id. */
async function refreshAll(context: Context, signal: AbortSignal): Promise<void> {
  const { metadata, runtime, log } = context;
  for (const reread of metadata.rereads.due(runtime.now(), REREADS)) {
    try {
      await refreshNode(context, reread, signal);
    } catch (error) {
      if (!(error instanceof RemoteError) || error.code !== "forbidden") throw error;
      // Not visible: everything is kept, and the others have their turn.
      metadata.rereads.postpone(reread, runtime.now() + HIDDEN_MS);
      log.warn({ err: error, nodeId: reread.nodeId }, "a node may not be read");
    }
  }
}
