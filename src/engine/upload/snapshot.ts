/**
 * Generations: finished cuts of a live file, whole, synced and hashed, which is what is uploaded.
 * A cut counts only if nothing changed from before it was begun until its row is written; that of a file which somebody has
 * open for writing, until its copy is made.
 */
import { isSameStat } from "../../lib/files.ts";
import { formatTime, toMilliseconds } from "../../lib/time.ts";
import type { Overtaken } from "../../metadata/detached-files.ts";
import type { InodeId, KernelNodeId, SnapshotId } from "../../metadata/ids.ts";
import { type Inode, QUARANTINED } from "../../metadata/inodes.ts";
import { FsError } from "../api/index.ts";
import type { CacheFile, Host, LocalFiles, Remote, Rows, SnapshotProgress, Uploads } from "../core/index.ts";
import {
  closeCacheFile,
  createWholeReader,
  despiteFullDisk,
  fetchAround,
  hashCacheFile,
  logClean,
  mtimeOf,
  openCacheFile,
  removeSnapshot,
  requireChecked,
  revokeWriteLeases,
  rowsFromFile,
  setContentClean,
  setContentDirty,
  syncCopy,
  syncName,
  TICK_MS,
  verify,
} from "../files/index.ts";
import { mayRefer } from "../host/index.ts";
import { renameDetached } from "../sync/index.ts";
import { EMPTY_HASH, isBeingDeleted, rowsOfInode } from "../tree/index.ts";
import { syncForSnapshot } from "./group-sync.ts";
import { paceAfterSnapshot, paceAfterTry } from "./snapshot-times.ts";

/** cut: its hash is known and its bytes can be sent. clean: it is a version the gateway has. busy: written meanwhile. held: not to be sent. */
export type SnapshotResult = "cut" | "clean" | "busy" | "held";

interface Making {
  /** It is a version's content, to be sent as that of another node. */
  readonly isOwn: boolean;
  readonly signal: AbortSignal;
  readonly onSnapshot: () => void;
  /** What is being done is known to who asks why it takes so long. */
  readonly tell: (what: SnapshotProgress["what"]) => void;
}

/** Pieces in which missing bytes are fetched. */
const PIECE = 8 * 1024 * 1024;

/**
 * Rejects when the bytes cannot be had (FsError), or with the signal's reason. `onSnapshot`: done in the transaction of a new
 * cut, before anybody can write again.
 */
export async function takeSnapshot(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  inodeId: InodeId,
  signal: AbortSignal,
  onSnapshot: () => void = () => {},
): Promise<SnapshotResult> {
  const { metadata, cacheFiles } = context;
  const inode = metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind !== "file") return "clean";
  if (inode.synced === QUARANTINED) return "held";
  if (hasSnapshot(context, inode)) return "cut";
  // A version is cut where the gateway cannot be told to take the content from there.
  const canRefer = mayRefer(context, inode);
  if (inode.content === "clean" && canRefer) return "clean";
  const isOwn = inode.content !== "dirty" && !canRefer;
  if (inode.size === 0 && !cacheFiles.has(inode.lineage) && metadata.cacheFiles.get(inode.lineage) === undefined) {
    return commitSnapshot(context, inode, { hash: EMPTY_HASH, size: 0, lineage: null, isOwn }, undefined, onSnapshot);
  }
  const cacheFile = await openCacheFile(context, inode.lineage, { write: false, isUse: false });
  const tell: Making["tell"] = (what) =>
    void context.fileState.snapshotsUnderWay.set(inode.id, { what, since: context.runtime.elapsed() });
  try {
    tell("fetched");
    await fetchAll(context, cacheFile, signal);
    const making = { isOwn, signal, onSnapshot, tell };
    if (cacheFile.use.writers === 0) return await snapshotInPlace(context, cacheFile, making);
    return await paced(context, cacheFile, () => snapshotCopy(context, cacheFile, making));
  } finally {
    context.fileState.snapshotsUnderWay.delete(inode.id);
    await closeCacheFile(context, cacheFile, { write: false });
  }
}

function hasSnapshot(context: Rows, inode: Inode): boolean {
  if (inode.content !== "dirty" || inode.hash === null) return false;
  if (inode.size === 0) return inode.hash === EMPTY_HASH;
  return context.metadata.snapshots.newestOf(inode.id)?.changes === inode.changes;
}

/** Every byte is in the file, those of a version are known to be right, and the row says so. */
export async function fetchAll(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
  signal: AbortSignal,
): Promise<void> {
  do {
    await fetchMissing(context, cacheFile, signal);
    await requireChecked(context, cacheFile, signal);
    await verify(context, cacheFile, signal);
    // Somebody else may have found out that it has to come again.
  } while (cacheFile.ranges.missing.length > 0 || cacheFile.ranges.unverified.length > 0);
}

async function fetchMissing(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
  signal: AbortSignal,
): Promise<void> {
  const reader = createWholeReader();
  for (let [start] = cacheFile.ranges.missing; start !== undefined; [start] = cacheFile.ranges.missing) {
    const last = cacheFile.ranges.missing.at(-1) ?? start;
    reader.next = start;
    await fetchAround(context, cacheFile, reader, start, Math.min(last, start + PIECE), signal);
  }
}

/** Nobody can write to it: the live file itself is the cut. */
async function snapshotInPlace(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
  making: Making,
): Promise<SnapshotResult> {
  const { isOwn, signal, onSnapshot, tell } = making;
  const before = begin(context, cacheFile);
  if (before === undefined) return "busy";
  tell("synced to the disk");
  await syncForSnapshot(context, cacheFile, before.inode.size);
  context.runtime.step("cut: synced");
  tell("hashed");
  const hashed = await hashCacheFile(context, cacheFile, before.inode.size, signal);
  context.runtime.step("cut: hashed");
  if (hashed === undefined || cacheFile.use.writers > 0) return "busy";
  const cut = { ...hashed, lineage: cacheFile.lineage, isOwn };
  return commitSnapshot(context, before.inode, cut, { live: cacheFile, writes: before.writes }, onSnapshot);
}

/** What it took, and whether it came about, is what the time of the next one depends on. */
async function paced(
  { runtime }: Host,
  cacheFile: CacheFile,
  cut: () => Promise<SnapshotResult>,
): Promise<SnapshotResult> {
  const from = runtime.elapsed();
  const { firstWriteAt: first = cacheFile.changes.lastWriteAt, lastWriteAt: last } = cacheFile.changes;
  let result: SnapshotResult = "busy";
  try {
    result = await cut();
    return result;
  } finally {
    const to = runtime.elapsed();
    cacheFile.pacing.pace =
      result === "busy"
        ? paceAfterTry(cacheFile.pacing.pace, from, to)
        : paceAfterSnapshot(cacheFile.pacing.pace, { first, last }, from, to);
  }
}

/** A writer has it open: a copy counts only if nothing changed while it was made. What is written after that is another change. */
async function snapshotCopy(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  cacheFile: CacheFile,
  making: Making,
): Promise<SnapshotResult> {
  const { isOwn, signal, onSnapshot, tell } = making;
  const { runtime, paths, metadata, lastSnapshots, disk, passthrough } = context;
  // What is left of a full disk is for the rows.
  if (disk.trouble !== undefined) throw new FsError("ENOSPC", `no copy of an open file can be made: ${disk.reason}`);
  const id = metadata.snapshots.reserveId();
  const path = paths.snapshot(id);
  await paths.prepareFolderOf(path);
  await runtime.files.remove(path);
  tell("copied");
  // So that the next sync, during which nothing may be written, is short.
  await cacheFile.disk.sync();
  await syncName(context, cacheFile);
  await rowsFromFile(context, cacheFile);
  const at = runtime.now();
  const before = begin(context, cacheFile);
  if (before === undefined) return "busy";
  const { writes } = before;
  const first = await cacheFile.disk.file.stat();
  const age = runtime.wallClock() - toMilliseconds(first.mtime);
  if (!passthrough.timesAreExact && age >= 0 && age < TICK_MS) return "busy";
  try {
    // Write-protects mapped pages, so that the next store into one changes the times.
    await cacheFile.disk.sync();
    await despiteFullDisk(context, first.size, () => runtime.files.clone(cacheFile.path, path));
    runtime.step("cut: copied");
    if (!isSameStat(first, await cacheFile.disk.file.stat()) || cacheFile.changes.writes !== writes) return "busy";
    await syncCopy(context, path);
    const { hash, size } = await runtime.files.hash(path, signal);
    const cut = { id, hash, size, lineage: null, isOwn };
    const result = await commitSnapshot(context, before.inode, cut, { live: cacheFile, writes }, onSnapshot);
    if (result !== "busy") lastSnapshots.set(cacheFile.inode, { at, hash });
    return result;
  } finally {
    if (metadata.snapshots.get(id) === undefined) await runtime.files.remove(path);
  }
}

/** Undefined: something is being written, or there is nothing to cut here any more. */
function begin(context: Rows & LocalFiles, cacheFile: CacheFile): { inode: Inode; writes: number } | undefined {
  revokeWriteLeases(context, cacheFile);
  const inode = context.metadata.inodes.get(cacheFile.inode);
  if (inode === undefined || inode.lineage !== cacheFile.lineage || cacheFile.changes.inFlight > 0) return undefined;
  return { inode, writes: cacheFile.changes.writes };
}

interface Cut {
  readonly id?: SnapshotId;
  readonly hash: string;
  readonly size: number;
  /** All of it, where it is small. */
  readonly bytes?: Uint8Array | undefined;
  readonly lineage: KernelNodeId | null;
  /** It is a version's content, to be sent as that of another node. */
  readonly isOwn: boolean;
}

/** One transaction, if what was cut is still the newest content, or a copy of what that was. */
async function commitSnapshot(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  before: Inode,
  cut: Cut,
  open: { readonly live: CacheFile; readonly writes: number } | undefined,
  onSnapshot: () => void,
): Promise<SnapshotResult> {
  const result = await context.groupCommit(() => {
    const settled = commitSnapshotNow(context, before, cut, open);
    if (settled === "cut") onSnapshot();
    // The copy was made before: it is what it was, and the file is more.
    if (settled !== "busy" && open !== undefined && open.live.changes.writes !== open.writes) {
      setContentDirty(context, open.live, open.live.changes.lastWriteAt);
    }
    return settled;
  });
  await context.dirtyLog.flush();
  context.runtime.step("cut: in the rows");
  return result;
}

function commitSnapshotNow(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  before: Inode,
  cut: Cut,
  open: { readonly live: CacheFile; readonly writes: number } | undefined,
): SnapshotResult {
  const { metadata, settings, cacheFiles } = context;
  const inode = metadata.inodes.get(before.id);
  if (inode === undefined || inode.changes !== before.changes || inode.lineage !== before.lineage) return "busy";
  if (cut.isOwn ? isAtAllNodes(context, inode.id, cut.hash) : inode.content === "clean") return "clean";
  if (open === undefined && cacheFiles.has(inode.lineage)) return "busy";
  const isOlder = open !== undefined && open.live.changes.writes !== open.writes;
  // One who was let in since may write to what would be sent.
  if (open !== undefined && cut.lineage !== null && (isOlder || open.live.use.writers > 0)) return "busy";
  for (const old of metadata.snapshots.unusedOf(inode.id)) removeSnapshot(context, old);
  const { hash, size } = cut;
  const detached = metadata.detachedFiles.get(inode.id);
  const agreed = cut.isOwn ? undefined : agreement(context, inode, hash, detached);
  // Whom nobody hears writing may be at it again.
  const staysAsItIs = open?.live.passthrough.lastStat === undefined && !isOlder;
  // Should this be undone, the next change only says again what the row says already.
  if (open !== undefined) setContentClean(open.live, staysAsItIs);
  if (agreed !== undefined) {
    // A writer that has not written since keeps the mark under which a crash makes us look.
    const content = (open?.live.use.writers ?? 0) > 0 ? "open" : "clean";
    metadata.inodes.update(inode.id, { hash, size, content, ...agreed });
    if (open !== undefined) metadata.cacheFiles.update(inode.lineage, { ...agreed, originHash: hash });
    logClean(context, inode.lineage);
    metadata.detachedFiles.setDirtySince(inode.id, null);
    return "clean";
  }
  metadata.inodes.update(inode.id, { hash, size, content: "dirty", synced: staysAsItIs ? 1 : 0 });
  if (size > 0) {
    const { id } = metadata.snapshots.create({
      ...(cut.id === undefined ? {} : { id: cut.id }),
      inode: inode.id,
      changes: inode.changes,
      lineage: cut.lineage,
      size,
      hash,
      mtime: formatTime(mtimeOf(context, inode)),
      synced: 1,
      boot: settings.boot,
    });
    if (cut.bytes !== undefined) cacheSnapshotBytes(context, id, cut.bytes);
  }
  if (detached !== undefined) renameDetached(context, detached);
  return "cut";
}

/** What was to be sent as another node's content is what that one has by now: somebody else did the same, and the cut is nobody's. */
function isAtAllNodes(context: Rows, inode: InodeId, hash: string): boolean {
  return rowsOfInode(context, inode).every(({ base }) => base?.hash === hash);
}

/**
 * The version with exactly these bytes that the inode's node, or the one it grew from, has in base; of a file without
 * its name the one that it was. Not one whose deletion is under way: nothing may come to need it any more.
 */
function agreement(
  context: Rows,
  inode: Inode,
  hash: string,
  detached: Overtaken | undefined,
): { originNode: string; originVersion: string } | undefined {
  const { entries, nodes } = context.metadata;
  const { originNode, originVersion } = inode;
  if (detached?.hash === hash && originNode !== null && originVersion !== null) return { originNode, originVersion };
  const rows = entries.ofInode(inode.id).map((entry) => nodes.ofEntry(entry.id));
  if (inode.originNode !== null) rows.push(nodes.ofNodeId(inode.originNode));
  for (const row of rows) {
    if (row?.nodeId == null || row.base?.head == null || row.base.hash !== hash) continue;
    if (isBeingDeleted(context, row)) continue;
    return { originNode: row.nodeId, originVersion: row.base.head };
  }
  return undefined;
}

/*
 * The bytes of small cuts, from when they were hashed until they are sent: read once, not twice.
 * Whoever does not find them here reads the file.
 */

/** More than this is not kept: the first ones go. */
const KEPT = 256;

/** By the id of the generation. The bytes are nobody's to change. */
export function cacheSnapshotBytes(
  { snapshotBytes }: Pick<LocalFiles, "snapshotBytes">,
  snapshot: SnapshotId,
  bytes: Uint8Array,
): void {
  const [first] = snapshotBytes.size < KEPT ? [] : snapshotBytes.keys();
  if (first !== undefined) snapshotBytes.delete(first);
  snapshotBytes.set(snapshot, bytes);
}
