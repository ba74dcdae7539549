/**
 * Identity belongs to the name: which node row an entry carries when programs create, remove and
 * rename. An editor's save, whatever its dance, ends as one more version of the node that had the
 * name. Every function runs inside the caller's transaction.
 */

import { isWhole } from "../../metadata/cache-files.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { EntryId, InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type NodeRow, unborn } from "../../metadata/nodes.ts";
import {
  dueTime,
  type Host,
  type LocalFiles,
  type Remote,
  type Request,
  type Rows,
  setInodeDirty,
  setNodeDirty,
  type Uploads,
} from "../core/index.ts";
import { cancelUpload, pinMtime } from "../files/index.ts";
import { dropRow } from "./abandoned-requests.ts";
import { folderOfNode } from "./from-node.ts";
import { keepInOthers } from "./hard-links.ts";
import { fileTimeText } from "./stat.ts";

/** A name that was moved away keeps its node if it is made again within this time. */
const RETURN_MS = 10_000;
const NOWHERE = { leftParent: null, leftName: null, leftAt: null } as const;

/** The node row of the folder's own name. */
export function rowOfFolder(context: Pick<Rows, "metadata">, folder: InodeId): NodeRow | undefined {
  const [entry] = context.metadata.entries.ofInode(folder);
  return entry === undefined ? undefined : context.metadata.nodes.ofEntry(entry.id);
}

/** What the row's name shows; undefined where it has none. */
export function inodeOfRow({ metadata }: Pick<Rows, "metadata">, { entry }: NodeRow): Inode | undefined {
  const name = entry === null ? undefined : metadata.entries.get(entry);
  return name === undefined ? undefined : metadata.inodes.get(name.inode);
}

/** The folder's node id; undefined while unborn. */
export function nodeIdOfFolder(context: Pick<Rows, "metadata">, folder: InodeId): string | undefined {
  return rowOfFolder(context, folder)?.nodeId ?? undefined;
}

/**
 * Its deletion was sent, and whether it was carried out is not known; also of one that was refused when it was sent
 * again. That one asked for the node as it was then: what came in since says that it was not, and will not be.
 */
export function isBeingDeleted({ metadata: { attempts } }: Pick<Rows, "metadata">, { id, base }: NodeRow): boolean {
  if (attempts.openOf(id)?.request.do === "delete") return true;
  const mayArrive = (request: Request) => request.do === "delete" && request.ifRevision >= (base?.revision ?? 0);
  return attempts.abandonedOf(id).some(({ request }) => mayArrive(request));
}

/** A file's node that no name here has, and that is there. */
function isFree(context: Pick<Rows, "metadata">, row: NodeRow): boolean {
  const isToldGone = row.seen !== null && "deleted" in row.seen;
  return row.entry === null && row.kind === "file" && !isToldGone && !isBeingDeleted(context, row);
}

/**
 * Content that gets another node, or none yet, is sent to it: where the gateway shows only heads its
 * bytes have to be here, and the row has to say so. Once somebody has replaced that head, or it is
 * deleted, nobody could read them.
 */
export function mayLeaveNode(
  { metadata, client, fileState }: Pick<Rows & LocalFiles & Remote, "metadata" | "client" | "fileState">,
  id: InodeId,
): boolean {
  const inode = metadata.inodes.get(id);
  if (client.features.versions || inode?.kind !== "file" || inode.content !== "clean" || inode.size === 0) return true;
  return isWhole(metadata.cacheFiles.get(inode.lineage)) && !fileState.evicting.has(inode.lineage);
}

/** `dirtySince`: of the row that had the content so far, so that who waits for that content goes on waiting. */
export function createUnborn(
  context: Rows & Uploads & Host,
  entry: EntryId,
  kind: "file" | "folder",
  dirtySince: number | null = null,
): NodeRow {
  const now = context.runtime.now();
  const since = dirtySince ?? now;
  const due = dueTime(context.settings, now, since);
  context.activity.wake(due);
  return context.metadata.nodes.create({ ...unborn(entry, kind, now, due), dirtySince: since });
}

/** A program made a name: a new entry, with the node the name had or a new one. */
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

/** A folder that the gateway does not know yet, for what was in one of that name. */
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

/** A program removed a name. Its node, if born, is a deletion to send; it stays the name's until that is sent. */
export function removeName(context: Rows & LocalFiles & Remote & Uploads & Host, entry: Entry): void {
  const row = context.metadata.nodes.ofEntry(entry.id);
  context.metadata.entries.remove(entry.id);
  if (row !== undefined) orphan(context, row, leftBehind(context, row, entry));
  const time = fileTimeText(context);
  touchFolder(context, entry.parent, time);
  context.metadata.inodes.update(entry.inode, { ctime: time });
  keepInOthers(context, entry.inode, row);
  context.fileState.removedAt = context.runtime.elapsed();
}

type Left = Partial<Pick<NodeRow, "leftParent" | "leftName" | "leftAt">>;

/** The place that a file's node had, should its name be made again there. */
function leftBehind({ runtime }: Host, { kind, nodeId }: NodeRow, { parent, name }: Entry): Left {
  return kind === "file" && nodeId !== null ? { leftParent: parent, leftName: name, leftAt: runtime.now() } : {};
}

/** The row lost its entry: a deletion to send, or nothing if the gateway never heard of it. */
function orphan(context: Rows & LocalFiles & Remote & Uploads & Host, row: NodeRow, left: Left = {}): void {
  const { metadata } = context;
  cancelUpload(context, row.id);
  if (row.nodeId === null && metadata.attempts.openOf(row.id) === undefined) {
    dropRow(context, row.id);
    return;
  }
  // A node that its birth turns out to have made and that came in later is the one that was removed.
  const at = row.nodeId === null ? { leftAt: context.runtime.now() } : left;
  setNodeDirty(context, row, null, { entry: null, ...at });
}

/**
 * Gives the entry the node that its place had: one whose deletion is not sent yet, or one that was
 * moved away a moment ago. The entry's own node, if any, goes. Files and special files only. Each
 * keeps its own where content that loses its node could not be had again.
 */
export function claimName(context: Rows & LocalFiles & Remote & Uploads & Host, entry: Entry): boolean {
  const { metadata, runtime } = context;
  const parentId = nodeIdOfFolder(context, entry.parent);
  const own = metadata.nodes.ofEntry(entry.id);
  const isHeir = (row: NodeRow) => isFree(context, row);
  const atHome = parentId === undefined ? [] : metadata.nodes.atPlace(parentId, entry.gatewayName ?? entry.name);
  const since = runtime.now() - RETURN_MS;
  const left = metadata.nodes.thatLeft(entry.parent, entry.name);
  const moved = left.find((row) => row.entry !== null && row.nodeId !== null && (row.leftAt ?? 0) >= since);
  // Or a place that thousands were moved away from, one by one, would be looked at longer each time.
  for (const row of left) if (row.entry !== null && (row.leftAt ?? 0) < since) metadata.nodes.update(row.id, NOWHERE);
  const heir = left.find(isHeir) ?? atHome.find(isHeir) ?? moved;
  return heir !== undefined && heir.id !== own?.id && giveNode(context, entry, own, heir);
}

/**
 * Of two that wait for each other for good: the entry, whose name another node has, and that node, whose deletion is
 * refused. It was made while the deletion might have been carried out; once that is not so, it is to take that node, as
 * it would if it were made now. Where nothing tells of deletions only its id says that the node is there: it is asked for.
 */
export function askForUndeletable(context: Rows & Remote, row: NodeRow): void {
  const nodeId = undeletableAt(context, row)?.nodeId;
  if (nodeId != null) context.metadata.rereads.add(nodeId);
}

/** The node was found by its id just now: who waits for its name takes it, if it cannot go. */
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
  // It waits for nothing, or what its own request did is not known yet.
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

/** `own`: the node it has so far, which goes. False: content that loses its node could not be had again. */
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
  if (former !== undefined) pinMtime(context, former.inode);
  pinMtime(context, entry.inode);
  if (own !== undefined) metadata.nodes.update(own.id, { entry: null });
  setNodeDirty(context, heir, own?.dirtySince, { entry: entry.id, ...NOWHERE });
  if (formerEntry !== null) createUnborn(context, formerEntry, "file", heir.dirtySince);
  if (own !== undefined) orphan(context, own);
  return true;
}

/** Rename of a file over an existing one: the target's entry keeps its node and takes the source's inode. */
export function replaceTarget(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  source: Entry,
  target: Entry,
): void {
  const { metadata } = context;
  const sourceRow = metadata.nodes.ofEntry(source.id);
  const targetRow = metadata.nodes.ofEntry(target.id);
  pinMtime(context, source.inode);
  metadata.entries.remove(source.id);
  metadata.entries.setInode(target.id, source.inode);
  if (targetRow !== undefined) cancelUpload(context, targetRow.id);
  if (targetRow !== undefined) setNodeDirty(context, targetRow, sourceRow?.dirtySince);
  if (sourceRow !== undefined) orphan(context, sourceRow);
  const time = fileTimeText(context);
  metadata.inodes.update(target.inode, { ctime: time });
  keepInOthers(context, target.inode, targetRow);
  afterMove(context, source.parent, target.parent, source.inode, time);
}

/** Rename to a free place. */
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
    setNodeDirty(context, row, null, leftBehind(context, row, entry));
    if (row.kind === "file") claimName(context, { ...entry, parent, name, gatewayName: null });
  }
  afterMove(context, entry.parent, parent, entry.inode);
}

/** Two entries take each other's place; nodes go with inodes. */
export function exchangeNames(context: Rows & Uploads & Host, a: Entry, b: Entry): void {
  const { entries, nodes } = context.metadata;
  // Names are unique in a folder at every moment: one of them steps aside first ("/" is in no name).
  entries.move(a.id, a.parent, `/${a.id}`);
  entries.move(b.id, a.parent, a.name);
  entries.move(a.id, b.parent, b.name);
  for (const entry of [a, b]) {
    const row = nodes.ofEntry(entry.id);
    if (row !== undefined) setNodeDirty(context, row);
  }
  const time = fileTimeText(context);
  afterMove(context, a.parent, b.parent, a.inode, time);
  context.metadata.inodes.update(b.inode, { ctime: time });
}

function afterMove(
  context: Rows & Uploads & Host,
  from: InodeId,
  to: InodeId,
  inode: InodeId,
  time = fileTimeText(context),
): void {
  context.metadata.inodes.update(inode, { ctime: time });
  touchFolder(context, from, time);
  if (to !== from) touchFolder(context, to, time);
}

/** A folder's names changed. One change has one time, as on a disk. */
function touchFolder(context: Rows & Uploads & Host, folder: InodeId, time = fileTimeText(context)): void {
  const { inodes } = context.metadata;
  const inode = inodes.get(folder);
  if (inode === undefined) return;
  inodes.update(folder, { attributes: { ...inode.attributes, mtime: time }, ctime: time });
  setInodeDirty(context, folder);
}
