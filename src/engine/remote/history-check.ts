/**
 * Whether the gateway's past is still the one that was followed here, and written to. A gateway whose data were set back
 * says so (400) only while its journal is shorter than what was followed; others make it as long soon. So whenever the
 * connection was lost it is asked for what stood at the end of that past: the entry that was followed last, and the
 * node it acknowledged a change of last. Knows nothing of what is done when it has another one.
 */
import { RemoteError } from "../../client/errors.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import {
  type Acknowledgment,
  type HistoryPoint,
  type Host,
  hasVersion,
  isRolledBack,
  type Kernel,
  lastHistoryPoint,
  type Remote,
  type Rows,
  toAsk,
} from "../core/index.ts";
import { isUntellable, readOrHidden } from "../sync/index.ts";
import type { JournalStream } from "./journal-stream.ts";

/** An id may answer 404 for a moment after the node was made. */
const NEW_MS = 30_000;
const PAGE = 500;
/** After so long the journal has told of a removal. Shorter than after what a node that answers 404 is taken as gone, with what is here of it. */
const LATE_MS = SETTLE_MS / 2;

export interface HistoryCheck {
  /**
   * Whether the journal still has the entry that was followed last, and the gateway what it acknowledged last. Asked for
   * each connection, before anything is followed by it; undefined: that is not known yet. Rejects when there is no answer.
   */
  isSame(signal: AbortSignal): Promise<boolean | undefined>;
}

/** The gateway has not come as far as this position. */
export function isUnknownPosition(error: unknown): error is RemoteError {
  return error instanceof RemoteError && error.code === "invalid" && error.field === "after";
}

export function createHistoryCheck(
  context: Rows & Kernel & Remote & Host,
  stream: Pick<JournalStream, "changes">,
): HistoryCheck {
  const { client, metadata, network, runtime, fresh, workspace, acknowledgedWrites } = context;
  /** Changes whenever others may have had the gateway while nobody here heard it. */
  const connection = () => stream.changes + fresh.asking();
  let knownAt: number | undefined;
  /** By which connection the rest counts: what was so before it nobody knows to have lasted. */
  let by = connection();
  /** A position that was acknowledged and that the journal had not come to, and since when. */
  let awaited: { readonly position: number; readonly since: number } | undefined;
  /** Since when an id of what was acknowledged answers 404. */
  let absentSince: number | undefined;
  /** Since when the gateway fails to tell of what was acknowledged. */
  let unconfirmedSince: number | undefined;
  acknowledgedWrites.connection = connection;

  function beginAnew(at: number): void {
    if (by !== at) [by, awaited, absentSince] = [at, undefined, undefined];
  }

  /** For how long the journal has not come to one and the same position: of who writes without a pause it is always behind. */
  function lateMs(): number {
    const { settings } = metadata;
    const [cursor, written] = [settings.getNumber("cursor"), settings.getNumber("written")];
    if (awaited !== undefined && cursor >= awaited.position) awaited = undefined;
    if (cursor < written) awaited ??= { position: written, since: runtime.elapsed() };
    return awaited === undefined ? 0 : runtime.elapsed() - awaited.since;
  }

  /** Nobody has removed it since, as far as is known. */
  function isExpected(nodeId: string): boolean {
    const row = metadata.nodes.ofNodeId(nodeId);
    return row !== undefined && row.entry !== null && !(row.seen !== null && "deleted" in row.seen);
  }

  /** A node the gateway does not tell of for good must not keep the journal from being followed. */
  async function readTold(id: string, signal: AbortSignal): Promise<Node | "hidden" | undefined> {
    try {
      const node = await readOrHidden(context, id, signal);
      unconfirmedSince = undefined;
      return node;
    } catch (error) {
      if (!isUntellable(context, error)) throw error;
      unconfirmedSince ??= runtime.elapsed();
      if (runtime.elapsed() - unconfirmedSince < SETTLE_MS) throw error;
      return "hidden";
    }
  }

  /** Undefined: its id answers 404. By id a node is never old. */
  async function has(change: Acknowledgment, signal: AbortSignal): Promise<boolean | undefined> {
    const { id, revision, head, lastKey, modifiedAt, isDeleted, isContent } = change;
    if (!client.features.revisions || (!isDeleted && !isExpected(id))) return true;
    const node = await readTold(id, signal);
    if (node === "hidden" || (isDeleted && node === undefined)) return true;
    // Removed here meanwhile.
    if (!isDeleted && !isExpected(id)) return true;
    if (node === undefined) return undefined;
    if (node.revision < revision) return false;
    if (node.revision === revision) {
      const isKeySame = !client.features.lastKey || node.lastKey === lastKey;
      return isKeySame && Date.parse(node.modifiedAt) === Date.parse(modifiedAt);
    }
    // Where somebody else's content came in the place of ours, ours is an earlier version.
    if (!isContent || head === null || node.head === head || !client.features.versions) return true;
    return (await hasVersion(context, id, head, signal)) ?? true;
  }

  /** Undefined: an id answers 404, and nothing tells yet that somebody removed the node. */
  async function hasAcknowledged(signal: AbortSignal): Promise<boolean | undefined> {
    const absent = new Set<string>();
    for (const change of toAsk(acknowledgedWrites)) {
      const is = await has(change, signal);
      if (is === false) return false;
      if (is === undefined) absent.add(change.id);
    }
    if (absent.size === 0) return true;
    const isAllTold = await readAhead(absent, signal);
    if (absent.size === 0) return true;
    absentSince ??= runtime.elapsed();
    return runtime.elapsed() - absentSince < (isAllTold ? NEW_MS : LATE_MS) ? undefined : false;
  }

  /** Takes out those that the journal tells to be removed. Whether it has come as far as what was acknowledged. */
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

  async function hasEntry(last: HistoryPoint, signal: AbortSignal): Promise<boolean> {
    try {
      const page = await client.readJournal(workspace.id, last.position - 1, { pageSize: 1, signal });
      network.answered();
      const [first] = page.items;
      // Who is late does not show it yet.
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
      if (isRolledBack(context) || lateMs() >= SETTLE_MS) return false;
      if (knownAt === at) return true;
      if (network.pauseMs("readJournal") > 0) return undefined;
      const last = lastHistoryPoint(context);
      if (last !== undefined && !(await hasEntry(last, signal))) return false;
      const is = await hasAcknowledged(signal);
      if (is !== true) return is;
      // What came by this connection meanwhile is no older.
      if (connection() === at) Object.assign(acknowledgedWrites, { doubted: [], by: at });
      knownAt = at;
      return true;
    },
  };
}

/** A gateway may word the same time in a page otherwise than in the stream. */
function isSameEntry(one: HistoryPoint, other: HistoryPoint): boolean {
  const { position, nodeId, revision, time } = one;
  const isOfNode = nodeId === other.nodeId && revision === other.revision;
  return position === other.position && isOfNode && Date.parse(time) === Date.parse(other.time);
}
