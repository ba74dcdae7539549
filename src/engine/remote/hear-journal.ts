/**
 * Follows the journal by its stream, and in pages where there is no stream or it does not suffice. If the gateway's
 * timeline is another one than before (timeline-check.ts), its data were set back. Then every known node is looked at
 * again. States that the gateway lost count as changed or deleted there, except contents whose bytes are here
 * (rollback-recovery.ts). Unsent changes are still to be sent. No change by a program is ever undone.
 */
import type { JournalEntry } from "../../contract/resources.ts";
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { follow, followOnce, type Hear } from "./follow.ts";
import type { JournalStream } from "./journal-stream.ts";
import { listMarked } from "./relist.ts";
import { createRollbackRecovery } from "./rollback-recovery.ts";
import { createTimelineCheck, isUnknownPosition } from "./timeline-check.ts";

/** Entries applied in one go. */
const BATCH = 500;
/** The pause between two pages while the stream is open. Positions without an entry come only by pages. */
const PAGES_MS = 30_000;

/** The `Hear` of a gateway with a journal: by `stream`, and by pages where the stream does not suffice. */
export function createHearing(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree & Sync,
  stream: JournalStream,
): Hear {
  const { client, metadata, runtime, settings, network, fresh, workspace, log, treeListings } = context;
  const timelineCheck = createTimelineCheck(context, stream);
  const lost = createRollbackRecovery(context);
  /** The last question for a page. `isOpen`: the stream was open then. Undefined: there was no question. */
  let asked: { readonly at: ElapsedTime; readonly isOpen: boolean } | undefined;
  /** Since when the oldest streamed entry waits for the answer to our own request. */
  let waitingSince: ElapsedTime | undefined;

  /** True when there is more to apply. */
  async function followStream(signal: AbortSignal): Promise<boolean> {
    const cursor = metadata.settings.getNumber("cursor");
    const late = stream.late.slice(0, BATCH);
    if (late.length > 0) {
      // Pages of the journal that were read before lack these entries.
      treeListings.resets += 1;
      await follow(context, late, cursor, signal);
    }
    stream.appliedLate(late.length);
    const isOverdue = waitingSince !== undefined && minus(runtime.elapsed(), waitingSince) >= settings.pollMs;
    const came = stream.entries.slice(0, BATCH);
    const ready = isOverdue ? came.length : countReady(context, came);
    waitingSince = ready < came.length ? (waitingSince ?? runtime.elapsed()) : undefined;
    const entries = came.slice(0, ready).filter(({ position }) => position > cursor);
    const end = Math.max(cursor, entries.at(-1)?.position ?? 0);
    if (end > cursor) await follow(context, entries, end, signal);
    stream.applied(end);
    return ready === BATCH;
  }

  function isPageNeeded(): boolean {
    if (network.pauseMs("readJournal") > 0) return false;
    if (!stream.isOpen || asked?.isOpen !== true || !network.isOnline || !fresh.isLive()) return true;
    // An open stream does not show that the token is accepted again, and all sending waits for that.
    if (network.loginNeeded !== undefined) return true;
    if (minus(runtime.elapsed(), asked.at) >= PAGES_MS) return true;
    return metadata.settings.getNumber("written") > metadata.settings.getNumber("cursor");
  }

  /** True when there is more to apply. Undefined: the gateway was rolled back. */
  async function followTimeline(signal: AbortSignal): Promise<boolean | undefined> {
    try {
      const isSame = await timelineCheck.isSame(signal);
      if (isSame !== true) return isSame === undefined ? false : undefined;
      if (stream.entries.length + stream.late.length > 0 && (await followStream(signal))) return true;
      if (stream.entries.length > 0 && waitingSince !== undefined) return false;
      if (!isPageNeeded()) return false;
      asked = { at: runtime.elapsed(), isOpen: stream.isOpen };
      return await followOnce(context, signal);
    } catch (error) {
      if (isUnknownPosition(error)) return undefined;
      throw error;
    }
  }

  /** After a rollback: looks at every known node again. After an interruption, also by a crash, this begins anew. */
  async function startOver(signal: AbortSignal): Promise<void> {
    if (!context.timeline.isRolledBack()) {
      log.warn({}, "the gateway's data were set back: everything known is looked at again");
      context.timeline.noteRollback();
    }
    network.answered();
    fresh.lost("the gateway's data were set back: everything known is looked at again");
    stream.renew();
    treeListings.resets += 1;
    // The present end of the journal is read before everything else. If the gateway is rolled back once more before the
    // end of this flow, the timeline check notices it by this end.
    const { asOf } = await client.readJournal(workspace.id, 0, { pageSize: 1, signal });
    const { items } = await client.readJournal(workspace.id, Math.max(0, asOf - 1), { pageSize: 1, signal });
    // A read-only mount sends nothing, so it could not bring the contents back.
    if (!settings.readOnly) await lost.keepAll(signal);
    metadata.transaction(() => {
      metadata.recount(runtime.now());
      metadata.relists.addAll();
      metadata.settings.set("cursor", String(asOf));
      metadata.settings.set("indexed", "0");
      metadata.settings.set("written", "0");
      context.timeline.forget();
      context.timeline.noteFollowed(items);
    });
    lost.forget();
  }

  return async (signal) => {
    await listMarked(context, signal);
    const isMore = await followTimeline(signal);
    if (isMore === undefined) await startOver(signal);
    return isMore ?? true;
  };
}

/**
 * Counts the entries before the first one whose request is still in flight. The answer to that request tells the same
 * as the journal, so a read of the node would be wasted.
 */
function countReady({ metadata, sending }: Rows & Uploads, entries: readonly JournalEntry[]): number {
  for (const [index, { key }] of entries.entries()) {
    const own = key == null ? undefined : metadata.attempts.ofKey(key);
    if (own !== undefined && sending.has(own.id)) return index;
  }
  return entries.length;
}
