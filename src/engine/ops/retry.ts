/** Retry: a person wants parked, failed and waiting changes to be tried now. */
import type { NodeRow } from "../../metadata/nodes.ts";
import type { RetryResult } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { inSlices, pathOfEntry } from "./queue-list.ts";

/**
 * Makes all rows due, or those at these paths ("/a/b") and below, also when the gateway has asked for a pause. Rejects
 * when the rows cannot be read or changed.
 */
export async function retryNow(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync & Outgoing,
  paths?: readonly string[],
): Promise<RetryResult> {
  const { metadata, runtime, network, activity } = context;
  const found = new Set<string>();
  let retried = 0;
  network.retry();
  const mayBeLimited = context.quota.limit !== undefined || context.readOnly.isForRole;
  if (mayBeLimited && network.isOnline) await context.quota.look();
  for await (const rows of inSlices(context, metadata.nodes.dirty)) {
    const chosen = paths === undefined ? rows : rows.filter((row) => isAsked(context, row, paths, found));
    if (chosen.length === 0) continue;
    metadata.transaction(() => {
      const now = runtime.now();
      for (const row of chosen) {
        letGo(context, row);
        metadata.nodes.update(row.id, { parked: null, due: now });
        // Of two exchange partners, only one has the request.
        for (const node of [row.id, context.planner.exchangeOf(row)?.node]) {
          if (node !== undefined) metadata.attempts.expediteAttemptsOf(node, now);
        }
      }
    });
    retried += chosen.length;
    activity.wake();
  }
  activity.progressed();
  const why = context.pauses.openEnded();
  return {
    retried,
    unknown: (paths ?? []).filter((path) => !found.has(path)),
    ...(why === undefined ? {} : { held: { why } }),
  };
}

/** Releases quarantined content, which may then be sent as it is, and forgets earlier failures. */
function letGo(context: Rows & LocalFiles, row: NodeRow): void {
  const { metadata } = context;
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  if (inode === undefined) return;
  context.readFailures.forget(inode);
  if (inode.synced === "quarantined") metadata.inodes.update(inode.id, { synced: "formerly" });
}

function isAsked(context: Rows & Tree, row: NodeRow, paths: readonly string[], found: Set<string>): boolean {
  const path = pathOfEntry(context, row);
  const hits = paths.filter((asked) => asked === "/" || path === asked || path.startsWith(`${asked}/`));
  for (const hit of hits) found.add(hit);
  return hits.length > 0;
}
