/**
 * Snapshots: finished states of a cache file, whole, synced and hashed. Snapshots are uploaded, cache files are not. A
 * snapshot of a file without writers counts only if nothing changes from its beginning until its row is written. A
 * snapshot of a file that is open for writing is a copy. It counts only if nothing changes until the copy is made.
 */
import { EMPTY_HASH } from "../../lib/empty-hash.ts";
import { isSameStat } from "../../lib/files.ts";
import { formatTime } from "../../lib/time.ts";
import type { DetachedFileRow } from "../../metadata/detached-files.ts";
import type { InodeId, KernelNodeId, SnapshotId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { FsError } from "../api/index.ts";
import type { CacheFile, Host, LocalFiles, Remote, Rows, SnapshotProgress } from "../core/index.ts";
import { mayRefer } from "../host/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { syncForSnapshot } from "./group-sync.ts";
import { paceAfterSnapshot, paceAfterTry } from "./snapshot-times.ts";

/**
 * taken: a snapshot exists; its hash is known and its bytes can be sent. clean: the content is a version that the gateway
 * has. busy: the file was written meanwhile. quarantined: the content is not to be sent.
 */
export type SnapshotResult = "taken" | "clean" | "busy" | "quarantined";

interface Making {
  /** The content is a version of the gateway, and is to be sent as the content of another node. */
  readonly isOwn: boolean;
  readonly signal: AbortSignal;
  readonly onSnapshot: () => void;
  /** Notes the present step, to explain a snapshot that takes long. */
  readonly tell: (what: SnapshotProgress["what"]) => void;
}

/**
 * Takes a snapshot of the inode's content, if it needs one. Rejects with an FsError if the bytes cannot be had, or with
 * the signal's reason. `onSnapshot`: runs in the transaction of a new snapshot, before any program can write again.
 */
export async function takeSnapshot(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync,
  inodeId: InodeId,
  signal: AbortSignal,
  onSnapshot: () => void = () => {},
): Promise<SnapshotResult> {
  const { metadata, cacheFiles } = context;
  const inode = metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind !== "file") return "clean";
  if (inode.synced === "quarantined") return "quarantined";
  if (hasSnapshot(context, inode)) return "taken";
  // Content that is a version of the gateway needs a snapshot only if the gateway cannot copy the content from that
  // version.
  const canRefer = mayRefer(context, inode);
  if (inode.content === "clean" && canRefer) return "clean";
  const isOwn = inode.content !== "dirty" && !canRefer;
  if (
    inode.size === 0 &&
    !cacheFiles.has(inode.kernelNodeId) &&
    metadata.cacheFiles.get(inode.kernelNodeId) === undefined
  ) {
    return commitSnapshot(
      context,
      inode,
      { hash: EMPTY_HASH, size: 0, kernelNodeId: null, isOwn },
      undefined,
      onSnapshot,
    );
  }
  const cacheFile = await context.cacheFiles.open(inode.kernelNodeId, { write: false, isUse: false });
  const tell: Making["tell"] = (what) =>
    context.fileState.noteSnapshot(inode.id, { what, since: context.runtime.elapsed() });
  try {
    tell("fetched");
    await cacheFile.fetchAll(signal);
    const making = { isOwn, signal, onSnapshot, tell };
    if (cacheFile.writers === 0) return await snapshotInPlace(context, cacheFile, making);
    return await paced(context, cacheFile, () => snapshotCopy(context, cacheFile, making));
  } finally {
    context.fileState.noteSnapshot(inode.id, undefined);
    await cacheFile.close({ write: false });
  }
}

function hasSnapshot(context: Rows, inode: Inode): boolean {
  if (inode.content !== "dirty" || inode.hash === null) return false;
  if (inode.size === 0) return inode.hash === EMPTY_HASH;
  return context.metadata.snapshots.newestOf(inode.id)?.changes === inode.changes;
}

/** No program has the file open for writing, so the cache file itself becomes the snapshot. */
async function snapshotInPlace(
  context: Rows & LocalFiles & Host & Tree & Sync,
  cacheFile: CacheFile,
  making: Making,
): Promise<SnapshotResult> {
  const { isOwn, signal, onSnapshot, tell } = making;
  const before = begin(context, cacheFile);
  if (before === undefined) return "busy";
  tell("synced to the disk");
  await syncForSnapshot(context, cacheFile, before.inode.size);
  context.runtime.step("snapshot: synced");
  tell("hashed");
  const hashed = await cacheFile.hash(before.inode.size, signal);
  context.runtime.step("snapshot: hashed");
  if (hashed === undefined || cacheFile.writers > 0) return "busy";
  const snapshot = { ...hashed, kernelNodeId: cacheFile.kernelNodeId, isOwn };
  return commitSnapshot(context, before.inode, snapshot, { cacheFile, writes: before.writes }, onSnapshot);
}

/** Runs `take`, and notes its duration and its success, on which the time of the next snapshot depends. */
async function paced(
  { runtime }: Host,
  cacheFile: CacheFile,
  take: () => Promise<SnapshotResult>,
): Promise<SnapshotResult> {
  const from = runtime.elapsed();
  const { lastWriteAt: last, firstWriteAt: first = last } = cacheFile;
  let result: SnapshotResult = "busy";
  try {
    result = await take();
    return result;
  } finally {
    const to = runtime.elapsed();
    const { pace } = cacheFile.pacing;
    const isOver = result !== "busy";
    const next = isOver ? paceAfterSnapshot(pace, { first, last }, from, to) : paceAfterTry(pace, from, to);
    cacheFile.pacing.tried(next);
  }
}

/**
 * A program has the file open for writing, so a copy becomes the snapshot. It counts only if nothing changed while it
 * was made. Later writes are another change. Rejects with ENOSPC while the disk is in trouble.
 */
async function snapshotCopy(
  context: Rows & LocalFiles & Host & Tree & Sync,
  cacheFile: CacheFile,
  making: Making,
): Promise<SnapshotResult> {
  const { isOwn, signal, onSnapshot, tell } = making;
  const { runtime, paths, metadata, lastSnapshots, disk } = context;
  // The last room of a full disk is for the rows.
  if (disk.trouble !== undefined) throw new FsError("ENOSPC", `no copy of an open file can be made: ${disk.reason}`);
  const id = metadata.snapshots.reserveId();
  const path = paths.snapshot(id);
  await paths.prepareFolderOf(path);
  await runtime.files.remove(path);
  tell("copied");
  // This sync makes the next one short. Nothing may be written during the next one.
  await cacheFile.sync();
  await cacheFile.syncName();
  await cacheFile.persistStat();
  const at = runtime.now();
  const before = begin(context, cacheFile);
  if (before === undefined) return "busy";
  const { writes } = before;
  const first = await cacheFile.stat();
  if (!cacheFile.isExact(first)) return "busy";
  try {
    // Write-protects mapped pages, so that the next store into one changes the times.
    await cacheFile.sync();
    await context.space.despiteFull(first.size, () => runtime.files.clone(cacheFile.path, path));
    runtime.step("snapshot: copied");
    if (!isSameStat(first, await cacheFile.stat()) || cacheFile.writes !== writes) return "busy";
    await context.snapshotFiles.syncCopy(path);
    const { hash, size } = await runtime.files.hash(path, signal);
    const snapshot = { id, hash, size, kernelNodeId: null, isOwn };
    const result = await commitSnapshot(context, before.inode, snapshot, { cacheFile, writes }, onSnapshot);
    if (result !== "busy") lastSnapshots.set(cacheFile.inode, { at, hash });
    return result;
  } finally {
    if (metadata.snapshots.get(id) === undefined) await runtime.files.remove(path);
  }
}

/** Undefined: a write is under way, or the cache file is not the inode's content any more. */
function begin(context: Rows, cacheFile: CacheFile): { inode: Inode; writes: number } | undefined {
  const writes = cacheFile.beginSnapshot();
  const inode = context.metadata.inodes.get(cacheFile.inode);
  if (inode === undefined || inode.kernelNodeId !== cacheFile.kernelNodeId || writes === undefined) return undefined;
  return { inode, writes };
}

interface NewSnapshot {
  readonly id?: SnapshotId;
  readonly hash: string;
  readonly size: number;
  /** The whole content, if it is small. */
  readonly bytes?: Uint8Array | undefined;
  readonly kernelNodeId: KernelNodeId | null;
  /** The content is a version of the gateway, and is to be sent as the content of another node. */
  readonly isOwn: boolean;
}

/**
 * Stores the snapshot in one transaction. It counts if it is of the newest content, or a copy of content that was the
 * newest when it was copied.
 */
async function commitSnapshot(
  context: Rows & LocalFiles & Host & Tree & Sync,
  before: Inode,
  snapshot: NewSnapshot,
  open: { readonly cacheFile: CacheFile; readonly writes: number } | undefined,
  onSnapshot: () => void,
): Promise<SnapshotResult> {
  const result = await context.groupCommit(() => {
    const outcome = commitSnapshotNow(context, before, snapshot, open);
    if (outcome === "taken") onSnapshot();
    // The program wrote after the copy was made. The snapshot is the state before that, and the file holds a newer
    // change.
    if (outcome !== "busy" && open !== undefined && open.cacheFile.writes !== open.writes) {
      open.cacheFile.setContentDirty(open.cacheFile.lastWriteAt);
    }
    return outcome;
  });
  await context.dirtyLog.flush();
  context.runtime.step("snapshot: in the rows");
  return result;
}

function commitSnapshotNow(
  context: Rows & LocalFiles & Host & Tree & Sync,
  before: Inode,
  snapshot: NewSnapshot,
  open: { readonly cacheFile: CacheFile; readonly writes: number } | undefined,
): SnapshotResult {
  const { metadata, settings, cacheFiles } = context;
  const inode = metadata.inodes.get(before.id);
  if (inode === undefined || inode.changes !== before.changes || inode.kernelNodeId !== before.kernelNodeId)
    return "busy";
  if (snapshot.isOwn ? isAtAllNodes(context, inode.id, snapshot.hash) : inode.content === "clean") return "clean";
  if (open === undefined && cacheFiles.has(inode.kernelNodeId)) return "busy";
  const isOlder = open !== undefined && open.cacheFile.writes !== open.writes;
  // This snapshot would be the cache file itself, and a writer that was admitted since may write to the bytes to be
  // sent.
  if (open !== undefined && snapshot.kernelNodeId !== null && (isOlder || open.cacheFile.writers > 0)) return "busy";
  for (const old of metadata.snapshots.unusedOf(inode.id)) context.snapshotFiles.remove(old);
  const { hash, size } = snapshot;
  const detached = metadata.detachedFiles.get(inode.id);
  const agreed = snapshot.isOwn ? undefined : agreement(context, inode, hash, detached);
  // Passthrough writers may be writing again already, and that is not reported.
  const staysAsItIs = open?.cacheFile.hasPassthroughWriter !== true && !isOlder;
  // If the transaction is rolled back, the next change marks the row dirty once more. That does no harm.
  if (open !== undefined) open.cacheFile.setContentClean(staysAsItIs);
  if (agreed !== undefined) {
    // With a writer that has not written since, the content is "open". That mark has the file checked after a crash.
    const content = (open?.cacheFile.writers ?? 0) > 0 ? "open" : "clean";
    metadata.inodes.update(inode.id, { hash, size, content, ...agreed });
    if (open !== undefined) metadata.cacheFiles.update(inode.kernelNodeId, { ...agreed, originHash: hash });
    context.dirtyFiles.clean(inode.kernelNodeId);
    metadata.detachedFiles.setDirtySince(inode.id, null);
    return "clean";
  }
  metadata.inodes.update(inode.id, { hash, size, content: "dirty", synced: staysAsItIs ? "durable" : "formerly" });
  if (size > 0) {
    const { id } = metadata.snapshots.create({
      ...(snapshot.id === undefined ? {} : { id: snapshot.id }),
      inode: inode.id,
      changes: inode.changes,
      kernelNodeId: snapshot.kernelNodeId,
      size,
      hash,
      mtime: formatTime(context.fileTimes.mtimeOf(inode)),
      synced: 1,
      boot: settings.boot,
    });
    if (snapshot.bytes !== undefined) cacheSnapshotBytes(context, id, snapshot.bytes);
  }
  if (detached !== undefined) context.detachedFiles.rename(detached);
  return "taken";
}

/** True: every node that was to get this content has it by now, for example from another mount. */
function isAtAllNodes(context: Tree, inode: InodeId, hash: string): boolean {
  return context.nodeRows.ofInode(inode).every(({ base }) => base?.hash === hash);
}

/**
 * The version of the gateway that has exactly these bytes: the base of a node of the inode, or of the node that the
 * content grew from. For a detached file, also the version that it grew from. Undefined: there is none. A node whose
 * deletion is under way does not count, because no content may begin to need it.
 */
function agreement(
  context: Rows & Tree,
  inode: Inode,
  hash: string,
  detached: DetachedFileRow | undefined,
): { originNode: string; originVersion: string } | undefined {
  const { entries, nodes } = context.metadata;
  const { originNode, originVersion } = inode;
  if (detached?.hash === hash && originNode !== null && originVersion !== null) return { originNode, originVersion };
  const rows = entries.ofInode(inode.id).map((entry) => nodes.ofEntry(entry.id));
  if (inode.originNode !== null) rows.push(nodes.ofNodeId(inode.originNode));
  for (const row of rows) {
    if (row?.nodeId == null || row.base?.head == null || row.base.hash !== hash) continue;
    if (context.nodeRows.isBeingDeleted(row)) continue;
    return { originNode: row.nodeId, originVersion: row.base.head };
  }
  return undefined;
}

/*
 * The bytes of small snapshots, from the hashing until they are sent, so that they are read once and not twice. If the
 * bytes are not here, the file is read.
 */

/** Snapshots whose bytes are kept in memory, at most. The oldest go first. */
const KEPT = 256;

/** Keeps the bytes, by the id of the snapshot. They must not be changed. */
function cacheSnapshotBytes(
  { snapshotBytes }: Pick<LocalFiles, "snapshotBytes">,
  snapshot: SnapshotId,
  bytes: Uint8Array,
): void {
  const [first] = snapshotBytes.size < KEPT ? [] : snapshotBytes.keys();
  if (first !== undefined) snapshotBytes.delete(first);
  snapshotBytes.set(snapshot, bytes);
}
