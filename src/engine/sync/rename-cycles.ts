/**
 * Finds the rows that a row waits for: its move, creation or deletion cannot be sent before theirs. If rows wait for
 * each other in a cycle, one of them takes a temporary name. Reads only.
 */
import type { Attempt } from "../../metadata/attempts.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Request, Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";

type Needs = Pick<Rows & Tree, "metadata" | "nodeRows">;

/** The place at which the mount shows the row. Null: it has no name, its folder is unborn, or it is the root. */
function wantedPlace({ metadata, nodeRows }: Needs, row: NodeRow): { parent: string; name: string } | null {
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  if (entry === undefined || entry.parent === entry.inode) return null;
  const parent = nodeRows.nodeIdOfFolder(entry.parent);
  return parent === undefined ? null : { parent, name: entry.gatewayName ?? entry.name };
}

/** True: the gateway said that the node is no longer where it is in base. */
export function isSeenAway({ base, seen }: NodeRow): boolean {
  if (seen === null) return false;
  return "deleted" in seen || seen.node.parentId !== base?.parent || seen.node.name !== base.name;
}

/** The other node that is, in base, at the place that this row wants. */
function occupantOf(context: Needs, row: NodeRow): NodeRow | undefined {
  const place = wantedPlace(context, row);
  if (place === null) return undefined;
  return context.metadata.nodes
    .atPlace(place.parent, place.name)
    .find((other) => other.id !== row.id && !isSeenAway(other) && !isLikelyGone(context, other));
}

/**
 * True: the node's deletion was sent, and its id answers 404. If it is there after all, a request for its place fails.
 */
function isLikelyGone({ metadata }: Needs, { id, entry, nodeId }: NodeRow): boolean {
  if (entry !== null || nodeId === null || metadata.rereads.missingSince(nodeId) === undefined) return false;
  const attempt = metadata.attempts.openOf(id);
  return attempt?.request.do === "delete" && attempt.tries > 0;
}

/**
 * True: another node is, in base, at the place that this row wants. Or a request of ours, whose answer is not known
 * yet, may have put one there.
 */
export function isPlaceOccupied(context: Needs, row: NodeRow): boolean {
  const place = wantedPlace(context, row);
  if (place === null || (row.base?.parent === place.parent && row.base.name === place.name)) return false;
  if (occupantOf(context, row) !== undefined) return true;
  return context.metadata.attempts.isPlaceWanted(row.id, place.parent, place.name);
}

/** True: a request of the node is under way, or one that exchanges it with another node. */
export function hasAttempt(context: Needs, row: NodeRow): boolean {
  return context.metadata.attempts.openOf(row.id) !== undefined || exchangeOf(context, row) !== undefined;
}

/** The open request of another node that exchanges the two. */
export function exchangeOf({ metadata }: Needs, { nodeId, base }: NodeRow): Attempt<Request> | undefined {
  if (nodeId === null || base?.parent == null) return undefined;
  return metadata.attempts.exchanging(nodeId, base.parent, base.name);
}

/**
 * The exchange partner: the node at the place that this row wants, if it wants the place of this row. Undefined also if
 * there is news of it, or if one of the two is to be inside the other.
 */
export function exchangePartnerOf(context: Needs, row: NodeRow): NodeRow | undefined {
  if (row.nodeId === null || row.base?.parent == null) return undefined;
  const other = occupantOf(context, row);
  if (other?.nodeId == null || other.seen !== null) return undefined;
  const place = wantedPlace(context, other);
  const isMutual = place?.parent === row.base.parent && place.name === row.base.name;
  const isNested = isMutual && [row, other].some((one) => pathWithin(context, one).length > 0);
  return isMutual && !isNested ? other : undefined;
}

/**
 * The rows from the folder that the row wants to be in, up to the row itself (not included), in base. Empty if that
 * folder is not below the row.
 */
export function pathWithin(context: Needs, row: NodeRow): NodeRow[] {
  if (row.kind !== "folder" || row.nodeId === null || row.entry === null) return [];
  const entry = context.metadata.entries.get(row.entry);
  if (entry === undefined || entry.parent === entry.inode) return [];
  const path: NodeRow[] = [];
  let at = context.nodeRows.ofFolder(entry.parent);
  while (at?.base != null && at.id !== row.id && !path.some((known) => known.id === at?.id)) {
    path.push(at);
    at = at.base.parent === null ? undefined : context.metadata.nodes.ofNodeId(at.base.parent);
  }
  return at?.id === row.id ? path : [];
}

/** True: the row is shown at another place than in base. */
function isAway(context: Needs, row: NodeRow): boolean {
  const place = wantedPlace(context, row);
  return place === null || place.parent !== row.base?.parent || place.name !== row.base.name;
}

/**
 * Rows whose content is, at the gateway, only a version of this node. This includes rows that a writer has open and may
 * not change, and rows whose open request copies such a version.
 */
export function referrersOf({ metadata }: Needs, row: NodeRow): NodeRow[] {
  if (row.nodeId === null) return [];
  const copying = metadata.attempts.nodesCopying(row.nodeId);
  const referrers = copying.flatMap((id) => (id === row.id ? [] : (metadata.nodes.get(id) ?? [])));
  for (const inode of metadata.inodes.withOrigin(row.nodeId)) {
    if (inode.content === "dirty") continue;
    for (const entry of metadata.entries.ofInode(inode.id)) {
      const other = metadata.nodes.ofEntry(entry.id);
      // Two unknown hashes are not the same.
      const hasIt = inode.hash !== null && other?.base?.hash === inode.hash;
      if (other !== undefined && other.id !== row.id && !hasIt) referrers.push(other);
    }
  }
  return referrers;
}

/** The rows that have to advance before this row can be moved, created or deleted. */
function blockersOf(context: Needs, row: NodeRow): NodeRow[] {
  const { metadata } = context;
  if (row.entry === null) {
    if (row.kind === "file") return referrersOf(context, row);
    if (row.nodeId === null) return [];
    const wanting = metadata.attempts.nodesWanting(row.nodeId).flatMap((id) => metadata.nodes.get(id) ?? []);
    return [...metadata.nodes.below(row.nodeId), ...wanting];
  }
  if (row.base !== null && !isAway(context, row)) return [];
  const entry = metadata.entries.get(row.entry);
  const parent =
    entry === undefined || entry.parent === entry.inode ? undefined : context.nodeRows.ofFolder(entry.parent);
  const occupant = occupantOf(context, row);
  return [
    ...(parent !== undefined && parent.nodeId === null ? [parent] : []),
    ...pathWithin(context, row).filter((other) => isAway(context, other)),
    ...(occupant === undefined ? [] : [occupant]),
  ];
}

/**
 * True: this row has to break a rename cycle. A row waits for its name, and it waits for that row, directly or by way
 * of others. Of several rows in one cycle, the one with the lowest id breaks it.
 */
export function breaksCycle(context: Needs, row: NodeRow): boolean {
  // Most names are wanted by no other row. Then there is no search.
  if (row.base?.parent == null || !isNameWanted(context, row, row.base.parent, row.base.name)) return false;
  const visited = new Set<NodeRowId>();
  const search = (at: NodeRow, holders: readonly NodeRow[]): boolean => {
    const occupant = occupantOf(context, at);
    if (occupant?.id === row.id) return holders.every((holder) => holder.id >= row.id);
    if (visited.has(at.id)) return false;
    visited.add(at.id);
    return blockersOf(context, at).some((next) =>
      search(next, occupant?.id === next.id ? [...holders, next] : holders),
    );
  };
  return search(row, []);
}

function isNameWanted(context: Needs, row: NodeRow, parent: string, name: string): boolean {
  const folder = context.nodeRows.folderOfNode(parent);
  const entry = folder === undefined ? undefined : context.metadata.entries.find(folder, name);
  return entry !== undefined && entry.id !== row.entry;
}
