/**
 * Removes the remains of an ended mount that no flow waits for: orphans and superseded kernel node ids that only its
 * kernel knew, snapshots without their file, files without rows, and rows without files. The sweep runs while the mount
 * is already used, a little at a time. Nothing is sent before its end, because a snapshot may turn out to have no file.
 *
 * The sweep notes the newest numbers at the start, and looks at each row and file again in the turn in which it acts on them.
 * So changes by programs, the kernel and the gateway meanwhile come first. If a cache file is to be made and an unknown
 * file of that number is still in the way, that one is moved to quarantine (files/backing-file.ts). The sweep may be
 * interrupted anywhere: the next start sweeps anew.
 */
import { SHARD } from "../../content/layout.ts";
import { hasCode } from "../../lib/system-error.ts";
import type { Snapshot } from "../../metadata/attempts.ts";
import type { InodeId, KernelNodeId, SnapshotId } from "../../metadata/ids.ts";
import type { Host, LocalFiles, Rows } from "../core/index.ts";

/** Rows looked at in one go. */
const SLICE = 50;

/**
 * Limits of the numbers that existed at the start. Of `orphans` and `superseded` they are the newest ones, of
 * `snapshots` the next one.
 */
interface Before {
  readonly orphans: number;
  readonly superseded: number;
  readonly snapshots: number;
  /** The rows were older than the files. */
  readonly wasOlder: boolean;
}

/**
 * Call it before the mount is used. The returned function does the work, and may run while the mount is used. It
 * rejects when the disk or the database fails.
 */
export function prepareSweep(
  context: Rows & LocalFiles & Host,
  { isResumed, wasOlder }: { readonly isResumed: boolean; readonly wasOlder: boolean },
): () => Promise<void> {
  const { inodes, snapshots } = context.metadata;
  const before: Before = {
    // After a takeover the kernel may know these still. They stay until it forgets them, or until the next mount.
    orphans: isResumed ? 0 : inodes.newestOrphan(),
    superseded: isResumed ? 0 : inodes.newestSuperseded(),
    snapshots: snapshots.end(),
    wasOlder,
  };
  context.fileState.sweepBegins();
  return () => sweep(context, before);
}

async function sweep(context: Rows & LocalFiles & Host, before: Before): Promise<void> {
  const { dirtyLog, fileState, log } = context;
  await forgetSuperseded(context, before.superseded);
  await removeOrphan(context, before.orphans);
  for (const shard of await shardsOf(context, "live")) await sweepCacheFile(context, shard, before);
  fileState.swept();
  for (const shard of await shardsOf(context, "generation")) await sweepSnapshotFiles(context, shard, before);
  await context.cacheFiles.removeLeft().catch((error: unknown) => {
    log.warn({ err: error }, "files that are not needed could not be removed yet");
  });
  if (dirtyLog.isNew || dirtyLog.isLong() || before.wasOlder) {
    context.background("writing the list of changed files anew", () => context.dirtyFiles.renew());
  }
  context.runtime.step("start: swept");
}

/** Lets other work of this thread run. False: the mount ends. */
async function goesOn({ runtime, fileState }: LocalFiles & Host): Promise<boolean> {
  await new Promise<void>((resolve) => runtime.soon(resolve));
  return !fileState.stopped.aborted;
}

async function forgetSuperseded(context: Rows & LocalFiles & Host, upTo: number): Promise<void> {
  const { metadata } = context;
  for (let after = 0; await goesOn(context); ) {
    const rows = metadata.inodes.superseded(after, upTo, SLICE);
    metadata.transaction(() => {
      for (const { kernelNodeId } of rows) context.orphans.dropKernelNodeId(kernelNodeId);
    });
    after = rows.at(-1)?.id ?? after;
    if (rows.length < SLICE) return;
  }
}

async function removeOrphan(context: Rows & LocalFiles & Host, upTo: number): Promise<void> {
  const { metadata } = context;
  for (let after = 0; await goesOn(context); ) {
    const rows = metadata.inodes.orphans(after, upTo, SLICE);
    metadata.transaction(() => {
      for (const { inode } of rows) removeIfOrphan(context, inode);
    });
    after = rows.at(-1)?.id ?? after;
    if (rows.length < SLICE) return;
  }
}

/** Removes an inode without a name. The kernel of this mount does not know it, and cannot look it up. */
function removeIfOrphan(context: Rows & LocalFiles, id: InodeId): void {
  const { metadata } = context;
  const inode = metadata.inodes.get(id);
  if (inode === undefined) return;
  if (metadata.entries.links(id) > 0) {
    metadata.inodes.hasName(id);
    return;
  }
  for (const snapshot of metadata.snapshots.unusedOf(id)) context.snapshotFiles.remove(snapshot);
  if (metadata.entries.isEmpty(id)) context.orphans.removeInode(inode);
}

/** The shards that have a folder, and those that have rows. */
async function shardsOf({ paths, metadata }: Rows & LocalFiles, kind: "live" | "generation"): Promise<Set<number>> {
  const shards = new Set(await paths.shards(kind));
  const next = (from: number) => (kind === "live" ? metadata.cacheFiles.next(from) : metadata.snapshots.nextCopy(from));
  for (let id = next(0); id !== undefined; ) {
    const shard = Math.floor(id / SHARD);
    shards.add(shard);
    id = next((shard + 1) * SHARD);
  }
  return shards;
}

/**
 * Sweeps one shard. Cache files without a row are quarantined. Rows without a file are removed if the gateway has the
 * bytes, and snapshots of such a file are dropped. The list of files is older than the rows. So each finding is checked
 * again under `alone`.
 */
async function sweepCacheFile(context: Rows & LocalFiles & Host, shard: number, before: Before): Promise<void> {
  const { metadata, paths, cacheFiles } = context;
  if (!(await goesOn(context))) return;
  const files = new Set(await paths.inShard("live", shard));
  const [from, to] = [shard * SHARD, (shard + 1) * SHARD];
  const rows = metadata.cacheFiles.among(from, to);
  const known = new Set(rows.map(({ kernelNodeId }) => kernelNodeId));
  const isOld = ({ id, kernelNodeId }: Snapshot) =>
    id < before.snapshots && (kernelNodeId === null || !cacheFiles.has(kernelNodeId));
  const stale = metadata.snapshots.staleOfKernelNodeIds(from, to).filter(isOld);
  const snapshots = metadata.snapshots
    .ofKernelNodeIds(from, to)
    .filter((snapshot) => isOld(snapshot) && (snapshot.kernelNodeId === null || !files.has(snapshot.kernelNodeId)));
  for (const snapshot of stale) dropStaleSnapshot(context, snapshot);
  for (const snapshot of snapshots) await dropIfAbsent(context, snapshot);
  for (const { kernelNodeId, bytes } of rows) {
    if (cacheFiles.has(kernelNodeId)) continue;
    if (!files.has(kernelNodeId)) await forgetIfAbsent(context, kernelNodeId);
    else if (bytes === 0) await countBytes(context, kernelNodeId);
  }
  for (const kernelNodeId of files) if (!known.has(kernelNodeId)) await quarantineUnknown(context, kernelNodeId);
}

async function forgetIfAbsent(context: Rows & LocalFiles & Host, kernelNodeId: KernelNodeId): Promise<void> {
  const { metadata, paths, cacheFiles } = context;
  await cacheFiles.alone(kernelNodeId, async () => {
    if (cacheFiles.has(kernelNodeId) || (await exists(context, paths.cacheFile(kernelNodeId)))) return;
    if (metadata.cacheFiles.get(kernelNodeId) !== undefined && metadata.cacheFiles.isEvictable(kernelNodeId))
      metadata.cacheFiles.remove(kernelNodeId);
  });
}

/** The file was open at the crash and its bytes were not counted. Without a count it would never be evicted. */
async function countBytes(context: Rows & LocalFiles & Host, kernelNodeId: KernelNodeId): Promise<void> {
  const { metadata, runtime, paths, cacheFiles } = context;
  await cacheFiles.alone(kernelNodeId, async () => {
    const isCounted = () => cacheFiles.has(kernelNodeId) || metadata.cacheFiles.get(kernelNodeId)?.bytes !== 0;
    if (isCounted()) return;
    const { allocated } = await runtime.files.stat(paths.cacheFile(kernelNodeId));
    if (!isCounted() && allocated > 0) metadata.cacheFiles.update(kernelNodeId, { bytes: allocated });
  });
}

async function quarantineUnknown(context: Rows & LocalFiles, kernelNodeId: KernelNodeId): Promise<void> {
  const { metadata, paths, cacheFiles } = context;
  await cacheFiles.alone(kernelNodeId, async () => {
    const isKnown = cacheFiles.has(kernelNodeId) || metadata.cacheFiles.get(kernelNodeId) !== undefined;
    if (!isKnown && !metadata.gone.has({ kind: "live", id: kernelNodeId }))
      await context.cacheFiles.quarantine(paths.cacheFile(kernelNodeId), `live-${kernelNodeId}`);
  });
}

/** Sweeps one shard of the snapshots that have files of their own, which are rare. */
async function sweepSnapshotFiles(context: Rows & LocalFiles & Host, shard: number, before: Before): Promise<void> {
  const { metadata, paths } = context;
  if (!(await goesOn(context))) return;
  const files = new Set(await paths.inShard("generation", shard));
  for (const snapshot of metadata.snapshots.copies(shard * SHARD, (shard + 1) * SHARD)) {
    if (snapshot.id < before.snapshots && !files.has(snapshot.id)) await dropIfAbsent(context, snapshot);
  }
  for (const id of files) await judgeSnapshotFile(context, id, before);
}

async function judgeSnapshotFile(context: Rows & LocalFiles & Host, id: SnapshotId, before: Before): Promise<void> {
  const { metadata, paths, runtime, cacheFiles } = context;
  const { snapshots, gone } = metadata;
  const isOfThisMount = id >= before.snapshots && id < snapshots.end();
  const snapshot = snapshots.get(id);
  if (isOfThisMount || snapshot?.kernelNodeId === null || gone.has({ kind: "generation", id })) return;
  // The crash may have come after the file was made and before its row was. No new snapshot may get its number.
  snapshots.passIds(id);
  if (snapshot === undefined) return context.cacheFiles.quarantine(paths.snapshot(id), `generation-${id}`);
  // The copy was not finished, and the cache file has the bytes. A writer may be making the copy anew.
  const { kernelNodeId } = snapshot;
  await cacheFiles.alone(kernelNodeId, async () => {
    if (!cacheFiles.has(kernelNodeId) && snapshots.get(id)?.kernelNodeId != null)
      await runtime.files.remove(paths.snapshot(id));
  });
}

/** Drops the snapshot if its file is absent, because it cannot be sent. */
async function dropIfAbsent(context: Rows & LocalFiles & Host, { id }: Snapshot): Promise<void> {
  const { metadata, paths } = context;
  const pathOf = ({ kernelNodeId }: Snapshot) =>
    kernelNodeId === null ? paths.snapshot(id) : paths.cacheFile(kernelNodeId);
  for (let snapshot = metadata.snapshots.get(id); snapshot !== undefined; ) {
    const isThere = await exists(context, pathOf(snapshot));
    const now = metadata.snapshots.get(id);
    // The snapshot may have got a file of its own meanwhile.
    if (isThere || now === undefined) return;
    if (now.kernelNodeId === snapshot.kernelNodeId) return dropStaleSnapshot(context, now);
    snapshot = now;
  }
}

function dropStaleSnapshot(context: Rows & LocalFiles & Host, snapshot: Snapshot): void {
  const { metadata, runtime } = context;
  metadata.transaction(() => {
    for (const { id } of metadata.attempts.ofSnapshot(snapshot.id)) metadata.attempts.abandon(id, runtime.now());
    context.snapshotFiles.remove(snapshot);
    const inode = metadata.inodes.get(snapshot.inode);
    if (inode === undefined || inode.changes !== snapshot.changes || inode.content !== "dirty") return;
    metadata.inodes.update(inode.id, { changes: inode.changes + 1, hash: null });
    context.queue.setInodeDirty(inode.id);
  });
}

async function exists({ runtime }: Host, path: string): Promise<boolean> {
  try {
    await runtime.files.stat(path);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}
