/**
 * Generations: finished cuts of a live file, whole, synced and hashed, which is what is uploaded.
 * A cut counts only if nothing changed from before it was begun until its row is written; that of a file which somebody has
 * open for writing, until its copy is made.
 */
import { isSameStat } from "../../lib/files.ts";
import { formatTime, toMilliseconds } from "../../lib/time.ts";
import type { GenerationId, InodeId, Lineage } from "../../metadata/ids.ts";
import { type Inode, QUARANTINED } from "../../metadata/inodes.ts";
import type { Overtaken } from "../../metadata/overtaken.ts";
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
  readonly onCut: () => void;
  /** What is being done is known to who asks why it takes so long. */
  readonly tell: (what: SnapshotProgress["what"]) => void;
}

/** Pieces in which missing bytes are fetched. */
const PIECE = 8 * 1024 * 1024;

/**
 * Rejects when the bytes cannot be had (FsError), or with the signal's reason. `onCut`: done in the transaction of a new
 * cut, before anybody can write again.
 */
export async function takeSnapshot(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  inodeId: InodeId,
  signal: AbortSignal,
  onCut: () => void = () => {},
): Promise<SnapshotResult> {
  const { metadata, cacheFiles } = context;
  const inode = metadata.inodes.get(inodeId);
  if (inode === undefined || inode.kind !== "file") return "clean";
  if (inode.synced === QUARANTINED) return "held";
  if (isCut(context, inode)) return "cut";
  // A version is cut where the gateway cannot be told to take the content from there.
  const canRefer = mayRefer(context, inode);
  if (inode.content === "clean" && canRefer) return "clean";
  const isOwn = inode.content !== "dirty" && !canRefer;
  if (inode.size === 0 && !cacheFiles.has(inode.lineage) && metadata.lives.get(inode.lineage) === undefined) {
    return settle(context, inode, { hash: EMPTY_HASH, size: 0, lineage: null, isOwn }, undefined, onCut);
  }
  const live = await openCacheFile(context, inode.lineage, { write: false, isUse: false });
  const tell: Making["tell"] = (what) =>
    void context.fileState.snapshotsUnderWay.set(inode.id, { what, since: context.runtime.elapsed() });
  try {
    tell("fetched");
    await fetchAll(context, live, signal);
    const making = { isOwn, signal, onCut, tell };
    if (live.use.writers === 0) return await snapshotInPlace(context, live, making);
    return await paced(context, live, () => snapshotCopy(context, live, making));
  } finally {
    context.fileState.snapshotsUnderWay.delete(inode.id);
    await closeCacheFile(context, live, { write: false });
  }
}

function isCut(context: Rows, inode: Inode): boolean {
  if (inode.content !== "dirty" || inode.hash === null) return false;
  if (inode.size === 0) return inode.hash === EMPTY_HASH;
  return context.metadata.generations.newestOf(inode.id)?.changes === inode.changes;
}

/** Every byte is in the file, those of a version are known to be right, and the row says so. */
export async function fetchAll(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  live: CacheFile,
  signal: AbortSignal,
): Promise<void> {
  do {
    await bringAll(context, live, signal);
    await requireChecked(context, live, signal);
    await verify(context, live, signal);
    // Somebody else may have found out that it has to come again.
  } while (live.ranges.missing.length > 0 || live.ranges.unverified.length > 0);
}

async function bringAll(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  live: CacheFile,
  signal: AbortSignal,
): Promise<void> {
  const reader = createWholeReader();
  for (let [start] = live.ranges.missing; start !== undefined; [start] = live.ranges.missing) {
    const last = live.ranges.missing.at(-1) ?? start;
    reader.next = start;
    await fetchAround(context, live, reader, start, Math.min(last, start + PIECE), signal);
  }
}

/** Nobody can write to it: the live file itself is the cut. */
async function snapshotInPlace(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  live: CacheFile,
  making: Making,
): Promise<SnapshotResult> {
  const { isOwn, signal, onCut, tell } = making;
  const before = begin(context, live);
  if (before === undefined) return "busy";
  tell("synced to the disk");
  await syncForSnapshot(context, live, before.inode.size);
  context.runtime.step("cut: synced");
  tell("hashed");
  const hashed = await hashCacheFile(context, live, before.inode.size, signal);
  context.runtime.step("cut: hashed");
  if (hashed === undefined || live.use.writers > 0) return "busy";
  const cut = { ...hashed, lineage: live.lineage, isOwn };
  return settle(context, before.inode, cut, { live, writes: before.writes }, onCut);
}

/** What it took, and whether it came about, is what the time of the next one depends on. */
async function paced({ runtime }: Host, live: CacheFile, cut: () => Promise<SnapshotResult>): Promise<SnapshotResult> {
  const from = runtime.elapsed();
  const { firstWriteAt: first = live.changes.lastWriteAt, lastWriteAt: last } = live.changes;
  let result: SnapshotResult = "busy";
  try {
    result = await cut();
    return result;
  } finally {
    const to = runtime.elapsed();
    live.pacing.pace =
      result === "busy"
        ? paceAfterTry(live.pacing.pace, from, to)
        : paceAfterSnapshot(live.pacing.pace, { first, last }, from, to);
  }
}

/** A writer has it open: a copy counts only if nothing changed while it was made. What is written after that is another change. */
async function snapshotCopy(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  live: CacheFile,
  making: Making,
): Promise<SnapshotResult> {
  const { isOwn, signal, onCut, tell } = making;
  const { runtime, paths, metadata, lastSnapshots, disk, passthrough } = context;
  // What is left of a full disk is for the rows.
  if (disk.trouble !== undefined) throw new FsError("ENOSPC", `no copy of an open file can be made: ${disk.reason}`);
  const id = metadata.generations.reserveId();
  const path = paths.generation(id);
  await paths.prepareFolderOf(path);
  await runtime.files.remove(path);
  tell("copied");
  // So that the next sync, during which nothing may be written, is short.
  await live.disk.sync();
  await syncName(context, live);
  await rowsFromFile(context, live);
  const at = runtime.now();
  const before = begin(context, live);
  if (before === undefined) return "busy";
  const { writes } = before;
  const first = await live.disk.file.stat();
  const age = runtime.wallClock() - toMilliseconds(first.mtime);
  if (!passthrough.timesAreExact && age >= 0 && age < TICK_MS) return "busy";
  try {
    // Write-protects mapped pages, so that the next store into one changes the times.
    await live.disk.sync();
    await despiteFullDisk(context, first.size, () => runtime.files.clone(live.path, path));
    runtime.step("cut: copied");
    if (!isSameStat(first, await live.disk.file.stat()) || live.changes.writes !== writes) return "busy";
    await syncCopy(context, path);
    const { hash, size } = await runtime.files.hash(path, signal);
    const cut = { id, hash, size, lineage: null, isOwn };
    const result = await settle(context, before.inode, cut, { live, writes }, onCut);
    if (result !== "busy") lastSnapshots.set(live.inode, { at, hash });
    return result;
  } finally {
    if (metadata.generations.get(id) === undefined) await runtime.files.remove(path);
  }
}

/** Undefined: something is being written, or there is nothing to cut here any more. */
function begin(context: Rows & LocalFiles, live: CacheFile): { inode: Inode; writes: number } | undefined {
  revokeWriteLeases(context, live);
  const inode = context.metadata.inodes.get(live.inode);
  if (inode === undefined || inode.lineage !== live.lineage || live.changes.inFlight > 0) return undefined;
  return { inode, writes: live.changes.writes };
}

interface Cut {
  readonly id?: GenerationId;
  readonly hash: string;
  readonly size: number;
  /** All of it, where it is small. */
  readonly bytes?: Uint8Array | undefined;
  readonly lineage: Lineage | null;
  /** It is a version's content, to be sent as that of another node. */
  readonly isOwn: boolean;
}

/** One transaction, if what was cut is still the newest content, or a copy of what that was. */
async function settle(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  before: Inode,
  cut: Cut,
  open: { readonly live: CacheFile; readonly writes: number } | undefined,
  onCut: () => void,
): Promise<SnapshotResult> {
  const result = await context.groupCommit(() => {
    const settled = settleNow(context, before, cut, open);
    if (settled === "cut") onCut();
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

function settleNow(
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
  for (const old of metadata.generations.unusedOf(inode.id)) removeSnapshot(context, old);
  const { hash, size } = cut;
  const overtaken = metadata.overtaken.get(inode.id);
  const agreed = cut.isOwn ? undefined : agreement(context, inode, hash, overtaken);
  // Whom nobody hears writing may be at it again.
  const staysAsItIs = open?.live.passthrough.lastStat === undefined && !isOlder;
  // Should this be undone, the next change only says again what the row says already.
  if (open !== undefined) setContentClean(open.live, staysAsItIs);
  if (agreed !== undefined) {
    // A writer that has not written since keeps the mark under which a crash makes us look.
    const content = (open?.live.use.writers ?? 0) > 0 ? "open" : "clean";
    metadata.inodes.update(inode.id, { hash, size, content, ...agreed });
    if (open !== undefined) metadata.lives.update(inode.lineage, { ...agreed, originHash: hash });
    logClean(context, inode.lineage);
    metadata.overtaken.setDirtySince(inode.id, null);
    return "clean";
  }
  metadata.inodes.update(inode.id, { hash, size, content: "dirty", synced: staysAsItIs ? 1 : 0 });
  if (size > 0) {
    const { id } = metadata.generations.create({
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
  if (overtaken !== undefined) renameDetached(context, overtaken);
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
  overtaken: Overtaken | undefined,
): { originNode: string; originVersion: string } | undefined {
  const { entries, nodes } = context.metadata;
  const { originNode, originVersion } = inode;
  if (overtaken?.hash === hash && originNode !== null && originVersion !== null) return { originNode, originVersion };
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
  generation: GenerationId,
  bytes: Uint8Array,
): void {
  const [first] = snapshotBytes.size < KEPT ? [] : snapshotBytes.keys();
  if (first !== undefined) snapshotBytes.delete(first);
  snapshotBytes.set(generation, bytes);
}
