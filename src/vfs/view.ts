/** Gathers what the plan looks at from the rows of one node. Reads only. */
import type { Scope } from "../contract/scopes.ts";
import { UPLOAD_SCOPES } from "../contract/scopes.ts";
import { ROOT_INODE } from "../metadata/metadata.ts";
import type { NodeRow } from "../metadata/nodes.ts";
import type { Context } from "./context.ts";
import { hasOtherNames, isFollower, isNewest } from "./links.ts";
import { writersOf } from "./live.ts";
import { localOf } from "./local.ts";
import { mayRefer } from "./network.ts";
import type { View } from "./plan.ts";
import { fits } from "./quota.ts";
import { canExchange } from "./request.ts";
import { hasAttempt, isPlaceTaken, opensRing, partnerOf, pathWithin, referrersOf } from "./rings.ts";

/** A remote edit waits this long for the writer of the same file, or until a drain begins; then both are kept. Who has written nothing is waited for until he closes. */
const WRITER_PATIENCE_MS = 15 * 60_000;

export function viewOf(context: Context, row: NodeRow): View {
  const { metadata, network } = context;
  const { features } = context.client;
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  const local = entry === undefined || inode === undefined ? null : localOf(context, row, entry, inode);
  const isGone = row.seen !== null && "deleted" in row.seen;
  const may = (scope: Scope) => network.may(scope);
  const isTaken = isPlaceTaken(context, row);
  const partner = isTaken && canExchange(features) && network.mayExchange ? partnerOf(context, row) : undefined;
  return {
    kind: row.kind,
    isRoot: inode?.id === ROOT_INODE,
    nodeId: row.nodeId,
    base: row.base,
    seen: row.seen,
    local,
    hasAttempt: hasAttempt(context, row),
    hasGivenUp: local === null && row.nodeId === null && metadata.attempts.hasAbandonedBirth(row.id),
    writers: inode === undefined ? 0 : writersOf(context, inode),
    below: local === null ? countBelow(context, row) : 0,
    ...(isGone && inode?.kind === "folder" ? countEntries(context, inode.id) : { cleanEntries: 0, dirtyEntries: 0 }),
    isFollower: inode !== undefined && isFollower(context, row, inode),
    isNewest: inode !== undefined && row.seen !== null && "node" in row.seen && isNewest(context, inode, row.seen.node),
    hasOtherNames: hasOtherNames(context, row, inode),
    hasWaited: hasWaited(context, row),
    isPlaceTaken: isTaken,
    partner:
      partner?.nodeId == null || partner.base === null
        ? null
        : { nodeId: partner.nodeId, revision: partner.base.revision, hasAttempt: hasAttempt(context, partner) },
    isRing: opensRing(context, row),
    isInsideItself: pathWithin(context, row).length > 0,
    isReferenced: (local === null || !features.versions) && isReferenced(context, row),
    fits: fits(context, row),
    features: inode === undefined || mayRefer(context, inode) ? features : { ...features, references: false },
    may: {
      create: UPLOAD_SCOPES.every(may),
      update: may("node.node.update"),
      delete: may("node.file.delete"),
    },
  };
}

function hasWaited({ drains, runtime }: Context, { seenAt }: NodeRow): boolean {
  return seenAt !== null && (drains.count > 0 || runtime.now() - seenAt > WRITER_PATIENCE_MS);
}

/**
 * Whose content is a version of this node waits for nothing but room where the quota holds it back: that
 * is what the deletion of this one gives, and versions of deleted nodes can be had.
 */
function isReferenced(context: Context, row: NodeRow): boolean {
  if (row.kind !== "file") return false;
  const { metadata, client } = context;
  const isHeldBack = (other: NodeRow) =>
    client.features.versions && !fits(context, other) && metadata.attempts.openOf(other.id) === undefined;
  return referrersOf(context, row).some((other) => !isHeldBack(other));
}

/** Of a folder that is gone at the gateway: how many entries agree with it, and how many it would lose. */
function countEntries(context: Context, folder: number): { cleanEntries: number; dirtyEntries: number } {
  let cleanEntries = 0;
  let dirtyEntries = 0;
  let cookie = 0;
  for (;;) {
    const entries = context.metadata.entries.list(folder, cookie, 500);
    for (const entry of entries) {
      cookie = entry.id;
      if (entry.inode === folder) continue;
      const row = context.metadata.nodes.ofEntry(entry.id);
      if (row?.nodeId == null || row.dirtySince !== null) dirtyEntries += 1;
      else cleanEntries += 1;
    }
    if (entries.length < 500) return { cleanEntries, dirtyEntries };
  }
}

/** In it at the gateway, as agreed or as asked for and not answered. */
function countBelow({ metadata }: Context, row: NodeRow): number {
  if (row.kind !== "folder" || row.nodeId === null) return 0;
  return metadata.nodes.countBelow(row.nodeId) + metadata.attempts.nodesWanting(row.nodeId).length;
}
