/**
 * The journal is followed: by its stream, and in pages where that is not there, or says too little.
 * When the gateway does not know the position we have come to, its past is another one than it was
 * (its data were replaced by older ones): then everything that is known is looked at again. What it lost
 * meanwhile is taken for changed or deleted there, but for contents that are here (lost-versions.ts); what is
 * unsent here stays so. Never undoes what a program did.
 */
import { RemoteError } from "../client/errors.ts";
import type { JournalEntry } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { follow, followOnce, type Hear } from "./follow.ts";
import type { JournalStream } from "./journal-stream.ts";
import { findLost, keepLost } from "./lost-versions.ts";
import { listMarked } from "./relist.ts";

/** Entries applied in one go. */
const BATCH = 500;
/** With a stream that tells all there is, how often a page is asked for: positions without an entry are told only there. */
const PAGES_MS = 30_000;

export function createHearing(stream: JournalStream): Hear {
  /** When a page was asked for last, and whether the stream was there by then. */
  let asked = { at: Number.NEGATIVE_INFINITY, isOpen: false };
  /** When the oldest entry that came was found to wait for an answer of our own. */
  let heldSince: number | undefined;

  /** True when there is more to apply. */
  async function followStream(context: Context, signal: AbortSignal): Promise<boolean> {
    const { metadata, runtime, settings } = context;
    const cursor = metadata.settings.getNumber("cursor");
    const isOverdue = heldSince !== undefined && runtime.elapsed() - heldSince >= settings.pollMs;
    const came = stream.entries.slice(0, BATCH);
    const ready = isOverdue ? came.length : countReady(context, came);
    heldSince = ready < came.length ? (heldSince ?? runtime.elapsed()) : undefined;
    const entries = came.slice(0, ready).filter(({ position }) => position > cursor);
    const end = Math.max(cursor, entries.at(-1)?.position ?? 0);
    if (end > cursor) await follow(context, entries, end, signal);
    stream.applied(end);
    return ready === BATCH;
  }

  function isPageNeeded({ metadata, network, runtime, fresh }: Context): boolean {
    if (!stream.isOpen || !asked.isOpen || !network.isOnline || !fresh.isLive()) return true;
    if (runtime.elapsed() - asked.at >= PAGES_MS) return true;
    return metadata.settings.getNumber("written") > metadata.settings.getNumber("cursor");
  }

  return async (context, signal) => {
    await listMarked(context, signal);
    if (stream.entries.length > 0 && (await followStream(context, signal))) return true;
    if (stream.entries.length > 0 && heldSince !== undefined) return false;
    if (!isPageNeeded(context)) return false;
    asked = { at: context.runtime.elapsed(), isOpen: stream.isOpen };
    return hearPage(context, stream, signal);
  };
}

/** Of an answer that is on its way the journal tells nothing new, and to read the node for that would be a request for nothing. */
function countReady({ metadata, sending }: Context, entries: readonly JournalEntry[]): number {
  const held = entries.findIndex(({ key }) => {
    const own = key == null ? undefined : metadata.attempts.ofKey(key);
    return own !== undefined && sending.has(own.id);
  });
  return held < 0 ? entries.length : held;
}

async function hearPage(context: Context, stream: JournalStream, signal: AbortSignal): Promise<boolean> {
  try {
    return await followOnce(context, signal);
  } catch (error) {
    const isUnknown = error instanceof RemoteError && error.code === "invalid" && error.field === "after";
    if (!isUnknown) throw error;
    context.network.answered();
    context.fresh.lost();
    stream.renew();
    context.log.warn({ err: error }, "the gateway's past is another one; all that is known is looked at again");
    await startOver(context, signal);
    return true;
  }
}

/** Broken off, also by a crash, it begins anew: until it is committed the gateway does not know the position. */
async function startOver(context: Context, signal: AbortSignal): Promise<void> {
  const { client, metadata, workspace } = context;
  const lost = await findLost(context, signal);
  const { asOf } = await client.readJournal(workspace.id, 0, { pageSize: 1, signal });
  metadata.transaction(() => {
    metadata.recount();
    keepLost(context, lost);
    metadata.relists.addAll();
    metadata.settings.set("cursor", String(asOf));
    metadata.settings.set("indexed", "0");
    metadata.settings.set("written", "0");
  });
}
