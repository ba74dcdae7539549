/** Gathers what the plan looks at from the rows of one node. Reads only. */
import type { Scope } from "../contract/scopes.ts";
import { UPLOAD_SCOPES } from "../contract/scopes.ts";
import type { Entry } from "../metadata/entries.ts";
import type { Inode } from "../metadata/inodes.ts";
import { ROOT_INODE } from "../metadata/metadata.ts";
import type { NodeRow } from "../metadata/nodes.ts";
import type { Context } from "./context.ts";
import { nodeIdOfFolder } from "./identity.ts";
import { writersOf } from "./live.ts";
import type { Local, LocalContent, View } from "./plan.ts";
import { EMPTY_HASH } from "./stat.ts";
import { isInside } from "./tree.ts";

export function viewOf(context: Context, row: NodeRow): View {
  const { metadata, network } = context;
  const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  const local = entry === undefined || inode === undefined ? null : localOf(context, row, entry, inode);
  const isGone = row.seen !== null && "deleted" in row.seen;
  const may = (scope: Scope) => network.may(scope);
  return {
    kind: row.kind,
    isRoot: inode?.id === ROOT_INODE,
    nodeId: row.nodeId,
    base: row.base,
    seen: row.seen,
    local,
    hasAttempt: metadata.attempts.openOf(row.id) !== undefined,
    hasGivenUp: local === null && row.nodeId === null && metadata.attempts.hasAbandoned(row.id),
    writers: inode === undefined ? 0 : writersOf(context, inode),
    below: local === null && row.kind === "folder" && row.nodeId !== null ? metadata.nodes.countBelow(row.nodeId) : 0,
    ...(isGone && inode?.kind === "folder" ? countEntries(context, inode.id) : { cleanEntries: 0, dirtyEntries: 0 }),
    isPlaceTaken: local !== null && isPlaceTaken(context, row, local),
    isRing: local !== null && row.base !== null && opensRing(context, row, local),
    isInsideItself: local !== null && entry !== undefined && row.base !== null && isBelowItself(context, row, entry),
    isReferenced: local === null && row.kind === "file" && isReferenced(context, row),
    may: {
      create: UPLOAD_SCOPES.every(may),
      update: may("node.node.update"),
      delete: may("node.file.delete"),
    },
  };
}

function localOf(context: Context, row: NodeRow, entry: Entry, inode: Inode): Local {
  const isRoot = inode.id === ROOT_INODE;
  const group = inode.linkGroup;
  const hash = inode.kind === "file" ? inode.hash : EMPTY_HASH;
  // While the content is not cut, the group's last written content is the one before.
  const link = group === null || hash === null ? row.base?.attributes.link : { group, hash };
  const { link: _, ...attributes } = inode.attributes;
  return {
    parent: isRoot ? null : (nodeIdOfFolder(context, entry.parent) ?? null),
    name: entry.gatewayName ?? entry.name,
    attributes: link === undefined ? attributes : { ...attributes, link },
    content: inode.kind === "folder" ? null : contentOf(context, inode),
  };
}

function contentOf(context: Context, inode: Inode): LocalContent {
  const isPlain = inode.kind === "file";
  const size = isPlain ? inode.size : 0;
  const isEmpty = size === 0 && inode.hash === EMPTY_HASH;
  const generation = isPlain && !isEmpty ? context.metadata.generations.newestOf(inode.id) : undefined;
  return {
    state: inode.content,
    hash: inode.hash,
    size,
    originNode: inode.originNode,
    originVersion: inode.originVersion,
    isCut: isEmpty || (generation !== undefined && generation.changes === inode.changes),
  };
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

/** By another node in base, or by one that a request of ours may have put there. */
function isPlaceTaken(context: Context, row: NodeRow, local: Local): boolean {
  if (local.parent === null || (row.base?.parent === local.parent && row.base.name === local.name)) return false;
  if (occupantOf(context, row, local) !== undefined) return true;
  return context.metadata.attempts.isPlaceWanted(row.id, local.parent, local.name);
}

/** Another node that is, in base, where this one wants to be. */
export function occupantOf(context: Pick<Context, "metadata">, row: NodeRow, local: Local): NodeRow | undefined {
  if (local.parent === null) return undefined;
  return context.metadata.nodes.atPlace(local.parent, local.name).find((other) => other.id !== row.id);
}

/** Every move of a ring waits for the next one; the row with the lowest id opens it. */
function opensRing(context: Context, row: NodeRow, local: Local): boolean {
  const seen = new Set<number>();
  let current: NodeRow = row;
  let wanted: Local = local;
  for (;;) {
    const next = occupantOf(context, current, wanted);
    if (next === undefined || next.entry === null || next.base === null) return false;
    if (next.id === row.id) return true;
    if (next.id < row.id || seen.has(next.id)) return false;
    seen.add(next.id);
    const entry = context.metadata.entries.get(next.entry);
    if (entry === undefined) return false;
    const parent = nodeIdOfFolder(context, entry.parent) ?? null;
    const name = entry.gatewayName ?? entry.name;
    if (parent === next.base.parent && name === next.base.name) return false;
    current = next;
    wanted = { parent, name, attributes: {}, content: null };
  }
}

/** The wanted folder is, in base, still below this folder: it has to move out first. */
function isBelowItself(context: Context, row: NodeRow, entry: Entry): boolean {
  if (row.kind !== "folder" || row.nodeId === null) return false;
  if (isInside(context, entry.parent, entry.inode) && entry.inode !== ROOT_INODE) return true;
  let current = nodeIdOfFolder(context, entry.parent);
  const visited = new Set<string>();
  while (current !== undefined && !visited.has(current)) {
    if (current === row.nodeId) return true;
    visited.add(current);
    current = context.metadata.nodes.ofNodeId(current)?.base?.parent ?? undefined;
  }
  return false;
}

/** An inode whose content is still only a reference to a version of this node. */
function isReferenced(context: Context, row: NodeRow): boolean {
  if (row.nodeId === null) return false;
  const { metadata } = context;
  for (const inode of metadata.inodes.withOrigin(row.nodeId)) {
    if (inode.content !== "clean") continue;
    for (const entry of metadata.entries.ofInode(inode.id)) {
      const other = metadata.nodes.ofEntry(entry.id);
      if (other !== undefined && other.id !== row.id && other.base?.hash !== inode.hash) return true;
    }
  }
  return false;
}
