/**
 * Checks whether the gateway's timeline is still the one that was followed and written to here. A gateway whose data
 * were set back answers 400 only while its journal is shorter than the followed one, and changes by others soon make it
 * as long. So after each lost connection the gateway is asked for the end of that timeline: the entry that was followed
 * last, and the node whose change it acknowledged last. Knows nothing of the recovery from a rollback.
 */
import { RemoteError } from "../../client/errors.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import { type Host, hasVersion, type Kernel, type Remote, type Rows } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { JournalStream } from "./journal-stream.ts";
import { NOT_FOUND_MS } from "./listing.ts";

const PAGE = 500;
/**
 * After so long the journal has told of a removal. A node whose id answers 404 counts as gone later than that, and its
 * local content goes with it. So the rollback is noticed before.
 */
const LATE_MS = SETTLE_MS / 2;

type Timeline = Remote["timeline"];
type TimelinePoint = NonNullable<ReturnType<Timeline["last"]>>;

interface TimelineCheck {
  /**
   * True: the journal still has the entry that was followed last, and the gateway still has the change that it
   * acknowledged last. Call it before entries of a connection are followed; the answer is remembered for that
   * connection. Undefined: not known yet. Rejects with a RemoteError if there is no answer.
   */
  isSame(signal: AbortSignal): Promise<boolean | undefined>;
}

/** True: the gateway's journal does not reach as far as the position that was asked for (400). */
export function isUnknownPosition(error: unknown): error is RemoteError {
  return error instanceof RemoteError && error.code === "invalid" && error.field === "after";
}

export function createTimelineCheck(
  context: Rows & Kernel & Remote & Host & Sync,
  stream: Pick<JournalStream, "changes">,
): TimelineCheck {
  const { client, metadata, network, runtime, fresh, workspace, timeline } = context;
  /**
   * The number of the connection. It changes with each gap in which the gateway was not heard, because its data may
   * have been replaced meanwhile.
   */
  const connection = () => stream.changes + fresh.asking();
  let knownAt: number | undefined;
  /** The connection to which the next two variables belong: a gap makes them invalid. */
  let by = connection();
  /** An acknowledged position that the journal has not reached, and the time since which that is so. */
  let unreached: { readonly position: number; readonly since: ElapsedTime } | undefined;
  /** The time since which the id of an acknowledged change answers 404. */
  let absentSince: ElapsedTime | undefined;
  /** The time since which the gateway fails to tell of an acknowledged change. */
  let unconfirmedSince: ElapsedTime | undefined;
  timeline.countsBy(connection);

  function beginAnew(at: number): void {
    if (by !== at) [by, unreached, absentSince] = [at, undefined, undefined];
  }

  /**
   * Milliseconds for which the live journal has not reached one and the same acknowledged position. The newest position
   * would not do, because the journal is always behind a mount that writes without a pause. A journal that is not heard
   * is not late. Example: the token is refused for longer than the settle time.
   */
  function lateMs(): number {
    const { settings } = metadata;
    const [cursor, written] = [settings.getNumber("cursor"), settings.getNumber("written")];
    const isLive = fresh.isLive();
    if (!isLive || (unreached !== undefined && cursor >= unreached.position)) unreached = undefined;
    if (isLive && cursor < written) unreached ??= { position: written, since: runtime.elapsed() };
    return unreached === undefined ? 0 : minus(runtime.elapsed(), unreached.since);
  }

  /** True: as far as this mount knows, the node was not removed since. */
  function isExpected(nodeId: string): boolean {
    const row = metadata.nodes.ofNodeId(nodeId);
    return row !== undefined && row.entry !== null && !(row.seen !== null && "deleted" in row.seen);
  }

  /**
   * Reads the node. If the gateway has failed to tell of it for the settle time, it counts as hidden, so that it does
   * not keep the journal from being followed.
   */
  async function readAcknowledged(id: string, signal: AbortSignal): Promise<Node | "hidden" | undefined> {
    try {
      const node = await context.nodeReader.readOrHidden(id, signal);
      unconfirmedSince = undefined;
      return node;
    } catch (error) {
      if (!context.nodeReader.isUntellable(error)) throw error;
      unconfirmedSince ??= runtime.elapsed();
      if (minus(runtime.elapsed(), unconfirmedSince) < SETTLE_MS) throw error;
      return "hidden";
    }
  }

  /** True: the gateway has the change. Undefined: its id answers 404. A read by id is never old. */
  async function has(change: ReturnType<Timeline["toAsk"]>[number], signal: AbortSignal): Promise<boolean | undefined> {
    const { id, revision, head, lastKey, modifiedAt, isDeleted, isContent } = change;
    if (!isDeleted && !isExpected(id)) return true;
    const node = await readAcknowledged(id, signal);
    if (node === "hidden" || (isDeleted && node === undefined)) return true;
    // The node was removed here during the read.
    if (!isDeleted && !isExpected(id)) return true;
    if (node === undefined) return undefined;
    if (node.revision < revision) return false;
    if (node.revision === revision) {
      return node.lastKey === lastKey && Date.parse(node.modifiedAt) === Date.parse(modifiedAt);
    }
    // Foreign content replaced ours, which must be an earlier version then.
    if (!isContent || head === null || node.head === head) return true;
    return (await hasVersion(context, id, head, signal)) ?? true;
  }

  /**
   * True: the gateway has the acknowledged changes. Undefined: an id answers 404, and the journal may still tell of the
   * node's removal.
   */
  async function hasAcknowledged(signal: AbortSignal): Promise<boolean | undefined> {
    const absent = new Set<string>();
    for (const change of timeline.toAsk()) {
      const isThere = await has(change, signal);
      if (isThere === false) return false;
      if (isThere === undefined) absent.add(change.id);
    }
    if (absent.size === 0) return true;
    const isJournalComplete = await readAhead(absent, signal);
    if (absent.size === 0) return true;
    absentSince ??= runtime.elapsed();
    return minus(runtime.elapsed(), absentSince) < (isJournalComplete ? NOT_FOUND_MS : LATE_MS) ? undefined : false;
  }

  /** Takes nodes that the journal tells as removed out of `absent`. True: it reaches the last acknowledged write. */
  async function readAhead(absent: Set<string>, signal: AbortSignal): Promise<boolean> {
    for (let after = metadata.settings.getNumber("cursor"); ; ) {
      const page = await client.readJournal(workspace.id, after, { pageSize: PAGE, signal });
      network.answered();
      for (const { kind, nodeId } of page.items) if (kind === "deleted") absent.delete(nodeId);
      const last = page.items.at(-1)?.position ?? after;
      if (page.items.length >= page.totalCount || last <= after)
        return page.asOf >= metadata.settings.getNumber("written");
      after = last;
    }
  }

  async function hasEntry(last: TimelinePoint, signal: AbortSignal): Promise<boolean> {
    try {
      const page = await client.readJournal(workspace.id, last.position - 1, { pageSize: 1, signal });
      network.answered();
      const [first] = page.items;
      // A gateway that lags does not show the entry yet.
      return first === undefined ? page.asOf < last.position : isSameEntry(first, last);
    } catch (error) {
      if (isUnknownPosition(error)) return false;
      throw error;
    }
  }

  return {
    async isSame(signal) {
      const at = connection();
      beginAnew(at);
      if (context.timeline.isRolledBack() || lateMs() >= SETTLE_MS) return false;
      if (knownAt === at) return true;
      if (network.pauseMs("readJournal") > 0) return undefined;
      const last = context.timeline.last();
      if (last !== undefined && !(await hasEntry(last, signal))) return false;
      const isThere = await hasAcknowledged(signal);
      if (isThere !== true) return isThere;
      // Writes that were acknowledged on this same connection need no check.
      if (connection() === at) timeline.isConfirmed(at);
      knownAt = at;
      return true;
    },
  };
}

/** Compares times by value, because a gateway may format the same time differently in a page and in the stream. */
function isSameEntry(one: TimelinePoint, other: TimelinePoint): boolean {
  const { position, nodeId, revision, time } = one;
  const isOfNode = nodeId === other.nodeId && revision === other.revision;
  return position === other.position && isOfNode && Date.parse(time) === Date.parse(other.time);
}
