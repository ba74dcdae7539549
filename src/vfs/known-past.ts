/**
 * Whether the gateway's past is still the one that was followed here, and written to. A gateway whose data were set back
 * says so (400) only while its journal is shorter than what was followed; others make it as long soon. So whenever the
 * connection was lost it is asked for what stood at the end of that past: the entry that was followed last, and the
 * node it acknowledged a change of last. Knows nothing of what is done when it has another one.
 */
import type { z } from "zod";
import { RemoteError } from "../client/errors.ts";
import { SETTLE_MS } from "../contract/features.ts";
import { journalEntry } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { readOrHidden } from "./fetch-node.ts";
import type { JournalStream } from "./journal-stream.ts";

/** An id may answer 404 for a moment after the node was made. */
const NEW_MS = 30_000;

/** Stands for the entry while the past is another one and that is not made up for: a crash must not forget it. */
const OTHER = "other";

/** Of an entry, what no other one has. */
const followed = journalEntry.pick({ position: true, nodeId: true, revision: true, time: true });
type Followed = z.infer<typeof followed>;

export interface KnownPast {
  /** Whether the journal still has the entry that was followed last. Asks once for each connection; rejects when there is no answer. */
  isFollowed(signal: AbortSignal): Promise<boolean>;
  /** The same of the change that was acknowledged last, once the journal tells of it. */
  isWritten(signal: AbortSignal): Promise<boolean>;
}

/** Within the transaction that moves the cursor past these. */
export function noteFollowed({ metadata }: Pick<Context, "metadata">, entries: readonly Followed[]): void {
  const last = entries.at(-1);
  if (last === undefined) return;
  const { position, nodeId, revision, time } = last;
  metadata.settings.set("followed", JSON.stringify({ position, nodeId, revision, time }));
}

/** It is another one, until `forgetPast`. */
export function notePastGone({ metadata }: Pick<Context, "metadata">): void {
  metadata.settings.set("followed", OTHER);
}

/** Within the transaction that begins with another past. */
export function forgetPast({ metadata, acknowledged }: Pick<Context, "metadata" | "acknowledged">): void {
  metadata.settings.set("followed", "");
  acknowledged.newest = undefined;
}

function lastFollowed({ metadata }: Context): Followed | typeof OTHER | undefined {
  const text = metadata.settings.get("followed") ?? "";
  return text === "" ? undefined : text === OTHER ? OTHER : followed.parse(JSON.parse(text));
}

/** The gateway has not come as far as this position. */
export function isUnknownPosition(error: unknown): error is RemoteError {
  return error instanceof RemoteError && error.code === "invalid" && error.field === "after";
}

export function createKnownPast(context: Context, stream: Pick<JournalStream, "changes">): KnownPast {
  const { client, metadata, network, runtime, fresh, workspace, acknowledged } = context;
  /** Changes whenever others may have had the gateway while nobody here heard it. */
  const connection = () => stream.changes + fresh.asking();
  let followedAt: number | undefined;
  let writtenAt: number | undefined;
  let behindSince: number | undefined;

  /** As long as no gateway is late, the journal may have yet to tell of it. */
  function isLate(): boolean {
    const { settings } = metadata;
    if (settings.getNumber("cursor") >= settings.getNumber("written")) behindSince = undefined;
    else behindSince ??= runtime.elapsed();
    return behindSince !== undefined && runtime.elapsed() - behindSince < SETTLE_MS;
  }

  /** Nobody has removed it since, as far as is known. */
  function isExpected(nodeId: string): boolean {
    const row = metadata.nodes.ofNodeId(nodeId);
    return row !== undefined && row.entry !== null && !(row.seen !== null && "deleted" in row.seen);
  }

  async function hasEntry(last: Followed, signal: AbortSignal): Promise<boolean> {
    try {
      const page = await client.readJournal(workspace.id, last.position - 1, { pageSize: 1, signal });
      network.answered();
      const [first] = page.items;
      // Who is late does not show it yet.
      return first === undefined ? page.asOf < last.position : isSame(first, last);
    } catch (error) {
      if (isUnknownPosition(error)) return false;
      throw error;
    }
  }

  return {
    async isFollowed(signal) {
      const at = connection();
      const last = lastFollowed(context);
      if (last === OTHER) return false;
      if (followedAt !== at && last !== undefined && !(await hasEntry(last, signal))) return false;
      followedAt = at;
      return true;
    },
    async isWritten(signal) {
      const at = connection();
      if (writtenAt === at || !client.features.revisions) return true;
      const { newest } = acknowledged;
      if (newest !== undefined && isExpected(newest.nodeId)) {
        if (isLate()) return true;
        const node = await readOrHidden(context, newest.nodeId, signal);
        if (node === undefined && isExpected(newest.nodeId)) return runtime.elapsed() - newest.at < NEW_MS;
        if (typeof node === "object" && node.revision < newest.revision) return false;
      }
      writtenAt = at;
      return true;
    },
  };
}

/** A gateway may word the same time in a page otherwise than in the stream. */
function isSame(one: Followed, other: Followed): boolean {
  const { position, nodeId, revision, time } = one;
  const isOfNode = nodeId === other.nodeId && revision === other.revision;
  return position === other.position && isOfNode && Date.parse(time) === Date.parse(other.time);
}
