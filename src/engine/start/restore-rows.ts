/**
 * The rows are older than the files: the database was damaged and replaced by a backup or an empty one, or it lost its
 * last changes. The dirty-file log names the files that programs wrote to since. Content of a known inode becomes dirty
 * content of that inode. Any other content gets its name again, or the name of a recovered copy. The requests that were
 * sent since are not known any more. The gateway tells their effects, as if others had made them.
 *
 * Each file is one transaction, and is not done twice. So this may be interrupted anywhere.
 */
import { z } from "zod";
import type { DirtyLogContent, Written } from "../../content/dirty-log.ts";
import type { FileStat } from "../../lib/files.ts";
import { addRange, clipRanges, intersectRanges, NO_RANGES, type Ranges } from "../../lib/ranges.ts";
import { formatTime } from "../../lib/time.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { After, InodeId, KernelNodeId, SnapshotId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";

/**
 * Bytes. If no note says that the rows are old, the end of the dirty-file log is compared with them. This is more than
 * the log of the database can have lost.
 */
const RECENT = 2 * 1024 * 1024;

/**
 * The note that the rows are older than the files. `known`: the newest kernel node id that they had given out when they
 * replaced the others.
 */
const restoredNote = z.object({ why: z.string(), known: z.number().int().optional() });

/** Why the rows were older than the files, and how many files were recovered by the dirty-file log. */
export interface Restored {
  readonly why: string;
  files: number;
}

/**
 * Brings rows that are older than the files up to them. Returns undefined if they were not. `needsCheck`: the machine
 * went down.
 */
export async function bringBack(context: Needs["context"], needsCheck: boolean): Promise<Restored | undefined> {
  const { metadata, paths, log } = context;
  const note = noteIn(metadata);
  // Power loss takes bytes of files as well as rows: see sync/power-loss.ts.
  if (note === undefined && (needsCheck || !wasBrokenOff(metadata))) return undefined;
  const read = await context.dirtyLog.read(note === undefined ? RECENT : undefined);
  // The last lines of the list may never have reached the disk.
  const list = { ...read, isWhole: read.isWhole && !needsCheck };
  if (note === undefined && !isAhead(context, list)) return undefined;
  const why = note?.why ?? "the last changes of the database were lost";
  log.warn({ why }, "the database is older than the files: they are compared");

  const files = new Set<KernelNodeId>();
  for await (const kernelNodeId of paths.cacheFiles()) files.add(kernelNodeId);
  const known = note?.known ?? (await begin(context, why, list, files));
  const restored: Restored = { why, files: 0 };
  const needs: Needs = { context, restored, list, files, known, needsCheck, gateway: { answers: true } };
  for (const word of list.written.values()) if (files.has(word.kernelNodeId)) await bringFile(needs, word);
  for (const kernelNodeId of files) if (!list.written.has(kernelNodeId)) await judgeUnconfirmed(needs, kernelNodeId);
  forgetDone(needs);
  metadata.settings.clear("restored");
  log.warn({ ...restored }, "the rows are as new as the files again");
  return restored;
}

interface Needs {
  readonly context: Rows & LocalFiles & Remote & Host & Tree & Sync & Incoming;
  readonly restored: Restored;
  readonly list: DirtyLogContent;
  /** Kernel node ids that have a file. */
  readonly files: Set<KernelNodeId>;
  readonly known: number;
  readonly needsCheck: boolean;
  /** Set to false once the gateway is out of reach: no other folder waits for it. */
  readonly gateway: { answers: boolean };
}

function noteIn({ settings }: Rows["metadata"]): z.infer<typeof restoredNote> | undefined {
  const text = settings.get("restored");
  return text === undefined ? undefined : restoredNote.parse(JSON.parse(text));
}

/** The mount before this one did not end in an orderly way. */
function wasBrokenOff({ settings }: Rows["metadata"]): boolean {
  return settings.get("boot") !== undefined;
}

/**
 * True: the list holds a change that the rows do not know. A line is written after its rows, so rows that are not older
 * know all of them.
 */
function isAhead({ metadata: { inodes } }: Rows, { written }: DirtyLogContent): boolean {
  const newest = inodes.newestKernelNodeId();
  return [...written.values()].some(({ kernelNodeId, changes }) => {
    return kernelNodeId > newest || changes > (inodes.ofKernelNodeId(kernelNodeId)?.changes ?? changes);
  });
}

/**
 * Skips all numbers that a file, or the kernel of an earlier mount, knows, so that none is given out again. Returns the
 * newest kernel node id that the rows know.
 */
async function begin(
  context: Rows & LocalFiles,
  why: string,
  list: DirtyLogContent,
  files: ReadonlySet<KernelNodeId>,
): Promise<number> {
  const { metadata, paths } = context;
  let snapshot: After<SnapshotId> = 0;
  for await (const id of paths.snapshots()) if (id > snapshot) snapshot = id;
  let kernelNodeId: After<KernelNodeId> = 0;
  for (const one of [...files, ...list.written.keys()]) if (one > kernelNodeId) kernelNodeId = one;
  return metadata.transaction(() => {
    const known = metadata.inodes.newestKernelNodeId();
    metadata.settings.set("restored", JSON.stringify({ why, known }));
    metadata.skipNumbers({ kernelNodeId, snapshot });
    metadata.cacheFiles.markAllForCheck();
    return known;
  });
}

async function bringFile(needs: Needs, word: Written): Promise<void> {
  const { context, known } = needs;
  const { metadata, runtime, paths } = context;
  const inode = metadata.inodes.ofKernelNodeId(word.kernelNodeId);
  // The inode was removed before these rows were made, or never had a name. The sweep quarantines the file.
  if (inode === undefined && (word.kernelNodeId <= known || word.path.length === 0)) return;
  const stat = await runtime.files.stat(paths.cacheFile(word.kernelNodeId));
  const missing = word.missingFrom === undefined ? NO_RANGES : await holesIn(context, word.kernelNodeId, stat.size);
  if (inode === undefined) return placeFile(needs, word, stat, missing);
  if (inode.kernelNodeId !== word.kernelNodeId || inode.kind !== "file") return;
  const isNews = word.changes > inode.changes;
  const row = metadata.cacheFiles.get(word.kernelNodeId);
  // A change has only one line. Where bytes were missing then, the program may have written more of them since.
  const isFuller = word.missingFrom !== undefined && inode.content === "dirty" && !isWhole(row);
  if (!isNews && !isFuller) return;
  const recorded = isNews || row === undefined ? undefined : row.missing;
  metadata.transaction(() => {
    const stillMissing = recorded === undefined ? missing : intersectRanges(missing, recorded);
    becomesChanged(needs, inode, word, stat, stillMissing);
    context.queue.setInodeDirty(inode.id);
  });
  needs.restored.files += 1;
}

/** Ranges of an incomplete file that were neither written nor fetched. On the disk they are holes. */
async function holesIn(
  { runtime, paths }: LocalFiles & Host,
  kernelNodeId: KernelNodeId,
  size: number,
): Promise<Ranges> {
  const file = await runtime.files.open(paths.cacheFile(kernelNodeId), "r");
  try {
    let holes = NO_RANGES;
    for (let at = 0; at < size; ) {
      const hole = await file.seek("hole", at);
      if (hole === undefined || hole >= size) break;
      const end = (await file.seek("data", hole)) ?? size;
      holes = addRange(holes, hole, end);
      at = end;
    }
    return clipRanges(holes, size);
  } finally {
    await file.close();
  }
}

/** The file's bytes become dirty content of the inode. */
function becomesChanged(needs: Needs, inode: Inode, word: Written, stat: FileStat, missing: Ranges): void {
  const { metadata, runtime } = needs.context;
  const isOfHead = word.missingFrom !== undefined && word.missingFrom.version === word.head;
  const originHash = isOfHead && word.size !== undefined ? (word.hash ?? null) : null;
  const cacheFile = {
    originNode: word.missingFrom?.node ?? null,
    originVersion: word.missingFrom?.version ?? null,
    originHash,
    originSize: word.size ?? 0,
    size: stat.size,
    bytes: stat.allocated,
    missing,
    unverified: originHash === null ? NO_RANGES : clipRanges(missing, word.size ?? 0),
    usedAt: runtime.now(),
  };
  if (metadata.cacheFiles.get(word.kernelNodeId) === undefined)
    metadata.cacheFiles.create({ kernelNodeId: word.kernelNodeId, ...cacheFile });
  else metadata.cacheFiles.update(word.kernelNodeId, cacheFile);
  const names = metadata.entries.ofInode(inode.id);
  const rows = names.flatMap(({ id }) => metadata.nodes.ofEntry(id) ?? []);
  for (const row of rows) grewFrom(needs.context, row, word);
  // Content is quarantined if power loss may have taken bytes of it, or if downloaded bytes and a program's bytes are
  // mixed and cannot be told apart.
  const isQuarantined =
    (needs.needsCheck || word.missingFrom !== undefined) && rows.some(({ base }) => base?.head != null);
  metadata.inodes.update(inode.id, {
    content: "dirty",
    hash: null,
    size: stat.size,
    attributes: { ...inode.attributes, mtime: formatTime(stat.mtime) },
    changes: Math.max(inode.changes, word.changes) + 1,
    synced: isQuarantined ? "quarantined" : "never",
  });
}

/**
 * If the content was written over a version of ours that these rows do not know, that version becomes the base. So
 * there is no conflict.
 */
function grewFrom({ metadata }: Rows, row: NodeRow, { node, head, hash, size, revision }: Written): void {
  const { base } = row;
  if (base === null || row.nodeId !== node || head === undefined || revision === undefined) return;
  if (revision <= base.revision || head === base.head) return;
  metadata.nodes.update(row.id, { base: { ...base, head, hash: hash ?? null, size: size ?? base.size } });
}

/** True: the content was written over the row's version, or a later one of ours. So no foreign content is lost. */
function grewOver(row: NodeRow | undefined, { node, head, revision }: Written): boolean {
  if (row === undefined || row.base === null || row.nodeId !== node) return false;
  return row.base.head === head || (revision !== undefined && revision > row.base.revision);
}

/**
 * A file without any row gets its former name, if that is free or shows the version that the file was written over.
 * Otherwise it becomes a recovered copy.
 */
async function placeFile(needs: Needs, word: Written, stat: FileStat, missing: Ranges): Promise<void> {
  const { context, needsCheck } = needs;
  const { metadata, runtime, paths } = context;
  const folder = await folderOfFile(needs, word);
  // The list tells no name of some files. Their new name shows that they were recovered.
  const name = word.path.at(-1) ?? context.conflictNames.free(folder, `file ${word.kernelNodeId}`, "recovered");
  await listIfPossible(needs, folder, name);
  const there = metadata.entries.find(folder, name);
  if (there !== undefined && (await isSameContent(context, there, word.kernelNodeId))) {
    return runtime.files.remove(paths.cacheFile(word.kernelNodeId));
  }
  metadata.transaction(() => {
    const inode = metadata.inodes.adopt(newInode(context, word), word.kernelNodeId);
    const row = there === undefined ? undefined : metadata.nodes.ofEntry(there.id);
    const former = there === undefined ? undefined : metadata.inodes.get(there.inode);
    const isWrittenOver = former?.kind === "file" && former.content === "clean" && grewOver(row, word);
    if (there === undefined) {
      context.names.add(folder, name, inode.id, "file");
    } else if (isWrittenOver && row?.nodeId != null && !needsCheck) {
      metadata.entries.setInode(there.id, inode.id);
      context.queue.setNodeDirty(row);
    } else {
      const copy = context.conflictNames.free(folder, name, "recovered");
      context.names.createUnborn(metadata.entries.create(folder, copy, inode.id).id, "file");
      context.log.warn({ name, copy }, "a changed file was brought back beside another of its name");
    }
    becomesChanged(needs, inode, word, stat, missing);
  });
  needs.restored.files += 1;
}

function newInode(context: Tree, { mode }: Written) {
  const time = context.stats.nowText();
  return {
    kind: "file",
    attributes: mode === undefined ? {} : { mode },
    size: 0,
    hash: null,
    originNode: null,
    originVersion: null,
    content: "dirty",
    atime: time,
    ctime: time,
  } as const;
}

/** The folder of the file, made again if the rows do not have it. */
async function folderOfFile(needs: Needs, { folder, path }: Written): Promise<InodeId> {
  const { context } = needs;
  const { metadata } = context;
  if (folder !== undefined && isFolder(context, folder)) return folder;
  let current = ROOT_INODE;
  for (const name of path.slice(0, -1)) {
    await listIfPossible(needs, current, name);
    const found = metadata.entries.find(current, name);
    if (found !== undefined && !isFolder(context, found.inode)) return current;
    current = found?.inode ?? context.names.makeFolder(current, name);
  }
  return current;
}

function isFolder({ metadata }: Rows, inode: InodeId): boolean {
  if (metadata.inodes.get(inode)?.kind !== "folder") return false;
  return inode === ROOT_INODE || metadata.entries.links(inode) > 0;
}

/** Lists the folder, to know whether the name is free. If that fails, the answer to the upload will tell. */
async function listIfPossible({ context, gateway }: Needs, folder: InodeId, name: string): Promise<void> {
  const { metadata, log, fileState, network } = context;
  if (
    !gateway.answers ||
    metadata.entries.find(folder, name) !== undefined ||
    metadata.inodes.get(folder)?.listed != null
  )
    return;
  try {
    await context.folders.complete(folder, fileState.stopped);
  } catch (error) {
    if (!network.isOnline) gateway.answers = false;
    log.warn({ err: error, folder }, "a folder could not be listed");
  }
}

/** True: the content was sent, and the rows have it from the gateway already. */
async function isSameContent(
  { metadata, runtime, paths }: Rows & LocalFiles & Host,
  there: Entry,
  kernelNodeId: KernelNodeId,
): Promise<boolean> {
  const inode = metadata.inodes.get(there.inode);
  if (inode === undefined || inode.content !== "clean" || inode.hash === null) return false;
  return (await runtime.files.hash(paths.cacheFile(kernelNodeId))).hash === inode.hash;
}

/**
 * A file that is not in the list. If the list is whole, the gateway has the content of the file, and a file that the
 * rows know is checked when it is opened. If the list is not whole, the file may hold changes: its hash decides.
 */
async function judgeUnconfirmed(needs: Needs, kernelNodeId: KernelNodeId): Promise<void> {
  const { context, list, known } = needs;
  const { metadata, runtime, paths, log } = context;
  const inode = metadata.inodes.ofKernelNodeId(kernelNodeId);
  if (inode === undefined) {
    if (kernelNodeId <= known) return;
    if (list.isWhole) return runtime.files.remove(paths.cacheFile(kernelNodeId));
    const stat = await runtime.files.stat(paths.cacheFile(kernelNodeId));
    if (stat.allocated === 0) return;
    const { hash } = await runtime.files.hash(paths.cacheFile(kernelNodeId));
    // Most likely the content came from the gateway. If not, it is a copy of the same bytes.
    if (metadata.inodes.isKnownContent(hash)) {
      const target = await paths.quarantine(paths.cacheFile(kernelNodeId), `live-${kernelNodeId}`);
      return log.warn(
        { path: target },
        "a cache file without a row was moved to quarantine: the gateway has its content",
      );
    }
    return placeFile(needs, { kernelNodeId, changes: 0, path: [] }, stat, NO_RANGES);
  }
  const row = metadata.cacheFiles.get(kernelNodeId);
  if (list.isWhole || inode.kernelNodeId !== kernelNodeId || inode.content !== "clean" || inode.kind !== "file") return;
  if (isWhole(row)) {
    if ((await runtime.files.hash(paths.cacheFile(kernelNodeId))).hash === inode.hash) return;
    const stat = await runtime.files.stat(paths.cacheFile(kernelNodeId));
    metadata.transaction(() => {
      becomesChanged(
        { ...needs, needsCheck: true },
        inode,
        { kernelNodeId, changes: inode.changes, path: [] },
        stat,
        NO_RANGES,
      );
      context.queue.setInodeDirty(inode.id);
    });
    needs.restored.files += 1;
    return;
  }
  const target = await paths.quarantine(paths.cacheFile(kernelNodeId), `live-${kernelNodeId}`);
  if (row !== undefined) metadata.cacheFiles.remove(kernelNodeId);
  log.warn({ path: target }, "an incomplete cache file was moved to quarantine: it may have been changed");
}

/**
 * Dirty content without a file, or without a line in a whole list, was sent or removed since: the gateway tells which.
 */
function forgetDone({ context, files, list }: Needs): void {
  const { metadata, log } = context;
  for (const inode of metadata.inodes.unclean()) {
    const isHere = files.has(inode.kernelNodeId) && (!list.isWhole || list.written.has(inode.kernelNodeId));
    if (inode.size === 0 || isHere) continue;
    metadata.transaction(() => {
      if (metadata.cacheFiles.get(inode.kernelNodeId) !== undefined) metadata.cacheFiles.remove(inode.kernelNodeId);
      for (const entry of metadata.entries.ofInode(inode.id)) forgetName(context, entry, inode);
      metadata.detachedFiles.remove(inode.id);
    });
    log.warn({ inode: inode.id }, "unsent content in the rows was sent or removed since: the gateway tells which");
  }
}

function forgetName({ metadata, nodeRows }: Rows & Tree, entry: Entry, inode: Inode): void {
  const row = metadata.nodes.ofEntry(entry.id);
  const { base, nodeId } = row ?? { base: null, nodeId: null };
  if (row !== undefined && base?.head != null && nodeId !== null) {
    const version = { originNode: nodeId, originVersion: base.head, size: base.size, hash: base.hash };
    metadata.inodes.update(inode.id, { content: "clean", changes: inode.changes + 1, ...version });
    metadata.rereads.add(nodeId);
    return;
  }
  metadata.entries.remove(entry.id);
  if (row !== undefined) nodeRows.drop(row.id);
}
