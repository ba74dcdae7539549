/**
 * Programs create, remove and rename entries, and node rows go with the entries. The node belongs to the name: however
 * an editor saves, the save ends as one more version of the node that had the name. Every function runs inside the
 * caller's transaction.
 */

import { plus, type RowTime } from "../../lib/clocks.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { EntryId, InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type NodeRow, unborn } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Request, Rows, Uploads } from "../core/index.ts";
import { dropRow } from "./abandoned-requests.ts";
import { keepInOthers } from "./hard-links.ts";
import { fileTimeText } from "./stat.ts";

/** A name that was moved away keeps its node if a program makes the name again within this time. */
const RETURN_MS = 10_000;
const NOWHERE = { leftParent: null, leftName: null, leftAt: null } as const;

/** The node row of the folder's own name; undefined if it has none. */
export function rowOfFolder(context: Pick<Rows, "metadata">, folder: InodeId): NodeRow | undefined {
  const [entry] = context.metadata.entries.ofInode(folder);
  return entry === undefined ? undefined : context.metadata.nodes.ofEntry(entry.id);
}

/** The inode that the row's name shows; undefined if the row has no name. */
export function inodeOfRow({ metadata }: Pick<Rows, "metadata">, { entry }: NodeRow): Inode | undefined {
  const name = entry === null ? undefined : metadata.entries.get(entry);
  return name === undefined ? undefined : metadata.inodes.get(name.inode);
}

/** The inode of the folder with this node id; undefined if the folder has no name here. */
export function folderOfNode(context: Pick<Rows, "metadata">, nodeId: string): InodeId | undefined {
  const row = context.metadata.nodes.ofNodeId(nodeId);
  if (row === undefined || row.entry === null || row.kind !== "folder") return undefined;
  return context.metadata.entries.get(row.entry)?.inode;
}

/** The folder's node id; undefined while it is unborn. */
export function nodeIdOfFolder(context: Pick<Rows, "metadata">, folder: InodeId): string | undefined {
  return rowOfFolder(context, folder)?.nodeId ?? undefined;
}

/**
 * True while a deletion that was sent may have been carried out. This includes a deletion that was refused when it was
 * sent again. Such a deletion is for the revision that the node had then: once base has a higher revision, the deletion
 * was not carried out and never will be.
 */
export function isBeingDeleted({ metadata: { attempts } }: Pick<Rows, "metadata">, { id, base }: NodeRow): boolean {
  if (attempts.openOf(id)?.request.do === "delete") return true;
  const mayArrive = (request: Request) => request.do === "delete" && request.ifRevision >= (base?.revision ?? 0);
  return attempts.abandonedOf(id).some(({ request }) => mayArrive(request));
}

/** True: the node is a file that still exists, that no name here has, and that no deletion can have reached. */
function isFree(context: Pick<Rows, "metadata">, row: NodeRow): boolean {
  const isSeenDeleted = row.seen !== null && "deleted" in row.seen;
  return row.entry === null && row.kind === "file" && !isSeenDeleted && !isBeingDeleted(context, row);
}

/**
 * The content may go to another node, or to one that does not exist yet, if its bytes can still be read then. Where the
 * gateway shows only heads (no versions), all bytes must be here, and the cache file's row must say so: once that head
 * is replaced or deleted, missing bytes could not be read any more.
 */
export function mayLeaveNode(
  { metadata, client, fileState }: Pick<Rows & LocalFiles & Remote, "metadata" | "client" | "fileState">,
  id: InodeId,
): boolean {
  const inode = metadata.inodes.get(id);
  if (client.features.isFull || inode?.kind !== "file" || inode.content !== "clean" || inode.size === 0) return true;
  return isWhole(metadata.cacheFiles.get(inode.kernelNodeId)) && !fileState.isEvicting(inode.kernelNodeId);
}

/**
 * Makes a node row for an entry whose node the gateway does not have. `dirtySince`: row time since which the content
 * waits to be sent; null: from now on.
 */
export function createUnborn(
  context: Rows & Uploads & Host,
  entry: EntryId,
  kind: "file" | "folder",
  dirtySince: RowTime | null = null,
): NodeRow {
  const now = context.runtime.now();
  const since = dirtySince ?? now;
  const due = context.queue.dueTime(now, since);
  context.activity.wake(due);
  return context.metadata.nodes.create({ ...unborn(entry, kind, now, due), dirtySince: since });
}

/** A program made a name. Adds an entry with the node that the name had, or with a new one. */
export function addName(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  parent: InodeId,
  name: string,
  inode: InodeId,
  kind: "file" | "folder",
): Entry {
  const entry = context.metadata.entries.create(parent, name, inode);
  if (kind === "folder" || !claimName(context, entry)) createUnborn(context, entry.id, kind);
  touchFolder(context, parent);
  return entry;
}

/** Makes a folder that the gateway does not know yet, for content that was in a folder of that name. */
export function makeFolder(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  parent: InodeId,
  name: string,
): InodeId {
  const { metadata } = context;
  const time = fileTimeText(context);
  const content = { size: 0, hash: null, originNode: null, originVersion: null, content: "clean", listed: 0 } as const;
  return metadata.transaction(() => {
    const { id } = metadata.inodes.create({ kind: "folder", attributes: {}, atime: time, ctime: time, ...content });
    addName(context, parent, name, id, "folder");
    return id;
  });
}

/**
 * A program removed a name. If its node exists at the gateway, a deletion is queued. Until the deletion is sent, the
 * node still belongs to the name.
 */
export function removeName(context: Rows & LocalFiles & Host, entry: Entry): void {
  const row = context.metadata.nodes.ofEntry(entry.id);
  context.metadata.entries.remove(entry.id);
  if (row !== undefined) orphan(context, row, leftBehind(context, row, entry));
  const time = fileTimeText(context);
  touchFolder(context, entry.parent, time);
  context.metadata.inodes.update(entry.inode, { ctime: time });
  keepInOthers(context, entry.inode, row);
  context.fileState.nameRemoved(context.runtime.elapsed());
}

type Left = Partial<Pick<NodeRow, "leftParent" | "leftName" | "leftAt">>;

/** The place that a file's node had, in case the name is made there again. */
function leftBehind({ runtime }: Host, { kind, nodeId }: NodeRow, { parent, name }: Entry): Left {
  return kind === "file" && nodeId !== null ? { leftParent: parent, leftName: name, leftAt: runtime.now() } : {};
}

/** The row lost its entry. A deletion is queued; if the gateway never heard of the node, the row is dropped. */
function orphan(context: Rows & LocalFiles & Host, row: NodeRow, left: Left = {}): void {
  const { metadata } = context;
  context.snapshotFiles.cancelUpload(row.id);
  if (row.nodeId === null && metadata.attempts.openOf(row.id) === undefined) {
    dropRow(context, row.id);
    return;
  }
  // The creation may turn out to have made a node. If that node comes in after this time, it is the removed one.
  const at = row.nodeId === null ? { leftAt: context.runtime.now() } : left;
  context.queue.setNodeDirty(row, null, { entry: null, ...at });
}

/**
 * Gives the entry the node that its place had: one whose deletion is not sent yet, or one that was moved away a moment
 * ago. The entry's own node, if any, goes (see `orphan`). Only for files and special files. Each name keeps its own
 * node if the content that would lose its node could not be fetched any more. Returns whether the entry got the node.
 */
function claimName(context: Rows & LocalFiles & Remote & Uploads & Host, entry: Entry): boolean {
  const { metadata, runtime } = context;
  const parentId = nodeIdOfFolder(context, entry.parent);
  const own = metadata.nodes.ofEntry(entry.id);
  const isHeir = (row: NodeRow) => isFree(context, row);
  const atHome = parentId === undefined ? [] : metadata.nodes.atPlace(parentId, entry.gatewayName ?? entry.name);
  const since = plus(runtime.now(), -RETURN_MS);
  const left = metadata.nodes.thatLeft(entry.parent, entry.name);
  const moved = left.find(
    (row) => row.entry !== null && row.nodeId !== null && row.leftAt !== null && row.leftAt >= since,
  );
  // Rows that left too long ago forget the place. Otherwise a place from which thousands of nodes were moved away, one
  // by one, would take longer to look at each time.
  for (const row of left)
    if (row.entry !== null && (row.leftAt === null || row.leftAt < since)) metadata.nodes.update(row.id, NOWHERE);
  const heir = left.find(isHeir) ?? atHome.find(isHeir) ?? moved;
  return heir !== undefined && heir.id !== own?.id && giveNode(context, entry, own, heir);
}

/**
 * Asks for the node that blocks the row's name. Example: a program removed a file and made the name again while the
 * deletion might have been carried out, so the entry did not take the node. Then the deletion is refused for good, and
 * the entry would wait for its name forever. Once it is known that the node is still there, the entry takes it, as it
 * would if it were made now. Where the gateway does not tell of deletions, only a read by id shows that. This requests
 * the read.
 */
export function askForUndeletable(context: Rows & Remote, row: NodeRow): void {
  const nodeId = undeletableAt(context, row)?.nodeId;
  if (nodeId != null) context.metadata.rereads.add(nodeId);
}

/** The node was just found by its id. If it cannot be deleted, the entry that waits for its name takes it. */
export function giveUndeletable(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  { id, entry, base }: NodeRow,
): void {
  const { metadata } = context;
  if (entry !== null || base?.parent == null) return;
  const folder = folderOfNode(context, base.parent);
  const waiting = folder === undefined ? undefined : metadata.entries.find(folder, base.name);
  const own = waiting === undefined ? undefined : metadata.nodes.ofEntry(waiting.id);
  if (waiting === undefined || own === undefined) return;
  // The entry does not wait for its name, or the effect of its own request is not known yet.
  const isThere = own.base?.parent === base.parent && own.base.name === base.name;
  if (isThere || metadata.attempts.openOf(own.id) !== undefined) return;
  const heir = undeletableAt(context, own);
  if (heir?.id === id) giveNode(context, waiting, own, heir);
}

function undeletableAt(context: Rows & Remote, row: NodeRow): NodeRow | undefined {
  const { metadata, network } = context;
  const entry = row.kind === "folder" || row.entry === null ? undefined : metadata.entries.get(row.entry);
  const parentId = entry === undefined ? undefined : nodeIdOfFolder(context, entry.parent);
  if (entry === undefined || parentId === undefined) return undefined;
  const isRefused = ({ parked }: NodeRow) => parked !== null || !network.may("node.file.delete");
  return metadata.nodes
    .atPlace(parentId, entry.gatewayName ?? entry.name)
    .find((other) => isFree(context, other) && other.seen === null && isRefused(other));
}

/**
 * Gives the entry the node `heir`. `own` is the node that it has so far; that one goes (see `orphan`). Returns false
 * if content that loses its node could not be fetched any more; then nothing changes.
 */
function giveNode(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  entry: Entry,
  own: NodeRow | undefined,
  heir: NodeRow,
): boolean {
  const { metadata } = context;
  const formerEntry = heir.entry;
  const former = formerEntry === null ? undefined : metadata.entries.get(formerEntry);
  if (former !== undefined && !mayLeaveNode(context, former.inode)) return false;
  if (own?.nodeId != null && !mayLeaveNode(context, entry.inode)) return false;
  if (former !== undefined) context.fileTimes.pinMtime(former.inode);
  context.fileTimes.pinMtime(entry.inode);
  if (own !== undefined) metadata.nodes.update(own.id, { entry: null });
  context.queue.setNodeDirty(heir, own?.dirtySince, { entry: entry.id, ...NOWHERE });
  if (formerEntry !== null) createUnborn(context, formerEntry, "file", heir.dirtySince);
  if (own !== undefined) orphan(context, own);
  return true;
}

/** Renames a file over an existing one: the target's entry keeps its node and takes the source's inode. */
export function replaceTarget(context: Rows & LocalFiles & Host, source: Entry, target: Entry): void {
  const { metadata } = context;
  const sourceRow = metadata.nodes.ofEntry(source.id);
  const targetRow = metadata.nodes.ofEntry(target.id);
  context.fileTimes.pinMtime(source.inode);
  metadata.entries.remove(source.id);
  metadata.entries.setInode(target.id, source.inode);
  if (targetRow !== undefined) context.snapshotFiles.cancelUpload(targetRow.id);
  if (targetRow !== undefined) context.queue.setNodeDirty(targetRow, sourceRow?.dirtySince);
  if (sourceRow !== undefined) orphan(context, sourceRow);
  const time = fileTimeText(context);
  metadata.inodes.update(target.inode, { ctime: time });
  keepInOthers(context, target.inode, targetRow);
  afterMove(context, source.parent, target.parent, source.inode, time);
}

/** Renames to a free place. */
export function moveName(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  entry: Entry,
  parent: InodeId,
  name: string,
): void {
  const { metadata } = context;
  metadata.entries.move(entry.id, parent, name);
  const row = metadata.nodes.ofEntry(entry.id);
  if (row !== undefined) {
    context.queue.setNodeDirty(row, null, leftBehind(context, row, entry));
    if (row.kind === "file") claimName(context, { ...entry, parent, name, gatewayName: null });
  }
  afterMove(context, entry.parent, parent, entry.inode);
}

/** Two entries exchange their places. Their nodes go with their inodes. */
export function exchangeNames(context: Rows & Host, a: Entry, b: Entry): void {
  const { entries, nodes } = context.metadata;
  // Names are unique in a folder at every moment, so one entry steps aside first. No name contains "/".
  entries.move(a.id, a.parent, `/${a.id}`);
  entries.move(b.id, a.parent, a.name);
  entries.move(a.id, b.parent, b.name);
  for (const entry of [a, b]) {
    const row = nodes.ofEntry(entry.id);
    if (row !== undefined) context.queue.setNodeDirty(row);
  }
  const time = fileTimeText(context);
  afterMove(context, a.parent, b.parent, a.inode, time);
  context.metadata.inodes.update(b.inode, { ctime: time });
}

function afterMove(
  context: Rows & Host,
  from: InodeId,
  to: InodeId,
  inode: InodeId,
  time = fileTimeText(context),
): void {
  context.metadata.inodes.update(inode, { ctime: time });
  touchFolder(context, from, time);
  if (to !== from) touchFolder(context, to, time);
}

/** The names of a folder changed. One change has one time, as on a disk. */
function touchFolder(context: Rows & Host, folder: InodeId, time = fileTimeText(context)): void {
  const { inodes } = context.metadata;
  const inode = inodes.get(folder);
  if (inode === undefined) return;
  inodes.update(folder, { attributes: { ...inode.attributes, mtime: time }, ctime: time });
  context.queue.setInodeDirty(folder);
}
