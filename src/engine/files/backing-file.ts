/**
 * The local file behind a kernel node id: found, made, or absent because the disk has no room for one. A cache file
 * that was opened while the disk was in trouble gets its real file once the trouble is over, also while readers have it
 * open.
 */
import type { Files, OpenFile } from "../../lib/files.ts";
import { clipRanges, NO_RANGES, rangeOf } from "../../lib/ranges.ts";
import { hasCode } from "../../lib/system-error.ts";
import { formatTime } from "../../lib/time.ts";
import type { CacheFileRow } from "../../metadata/cache-files.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { despiteFullDisk } from "./disk-room.ts";
import { FileChanges } from "./file-changes.ts";
import { FileOnDisk, type FoundOnDisk } from "./file-on-disk.ts";
import { alone } from "./file-state.ts";
import { FileUse } from "./file-use.ts";
import { type FoundRanges, type Origin, OriginRanges } from "./origin-ranges.ts";
import type { LocalFiles } from "./room.ts";
import { mtimeOf } from "./times.ts";

/** Throws ESTALE when the kernel node id is superseded or unknown: the kernel then looks the name up again. */
export function requireCurrent(context: Rows, kernelNodeId: KernelNodeId): Inode {
  const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  if (inode === undefined || inode.kernelNodeId !== kernelNodeId)
    throw new FsError("ESTALE", `kernel node id ${kernelNodeId} is superseded`);
  return inode;
}

export async function openFile(
  context: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
  mayBeAbsent: boolean,
): Promise<OpenCacheFile> {
  const inode = requireCurrent(context, kernelNodeId);
  return createCacheFile(
    context,
    inode,
    context.paths.cacheFile(kernelNodeId),
    await findFile(context, inode, mayBeAbsent),
  );
}

/**
 * Makes and opens the file of a new inode, whose row rowOfNewFile made. It has no version and no bytes, and no other
 * handle has it open. So it gets its mtime here and is ready for a writer. Rejects with ESTALE or the disk's error.
 */
export async function openNewFile(
  context: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
): Promise<OpenCacheFile> {
  const inode = requireCurrent(context, kernelNodeId);
  const path = context.paths.cacheFile(kernelNodeId);
  const mtime = mtimeOf(context, inode);
  const file = await makeFile(context, path, 0);
  await closeIfFailed(file, () => file.setTimes(mtime));
  const found = { ...WITHOUT_ORIGIN, file, isNew: true, isKept: true };
  return createCacheFile(context, inode, path, found, formatTime(mtime));
}

/**
 * Makes the row of a new file. Call it in the transaction that makes the inode. False: it made none, because there may
 * be a local file of this number without a row. openFile looks at that file first, and then makes the row.
 */
export function rowOfNewFile(
  { metadata, runtime, fileState }: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
): boolean {
  if (fileState.isUnswept) return false;
  metadata.cacheFiles.create({
    kernelNodeId,
    ...NO_ORIGIN,
    size: 0,
    bytes: 0,
    missing: NO_RANGES,
    usedAt: runtime.now(),
  });
  return true;
}

const NO_ORIGIN = { originNode: null, originVersion: null };

/**
 * For a takeover: opens a file again that the earlier daemon had open, also when its kernel node id is superseded by
 * now. `isWritten`: a writer has the file open. Then the rows may be older than the file, and a file with content is
 * never made anew. Rejects with ESTALE, EIO or the disk's error.
 */
export async function reopenFile(
  context: Rows & LocalFiles & Host,
  kernelNodeId: KernelNodeId,
  isWritten: boolean,
): Promise<OpenCacheFile> {
  const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  const row = context.metadata.cacheFiles.get(kernelNodeId);
  if (inode === undefined) throw new FsError("ESTALE", `kernel node id ${kernelNodeId} is not known`);
  let then: Inode = isWritten && inode.content === "clean" ? { ...inode, content: "open" } : inode;
  if (inode.kernelNodeId !== kernelNodeId) {
    if (row === undefined)
      throw new FsError("ESTALE", `kernel node id ${kernelNodeId} is superseded, and its bytes are gone`);
    const { originNode, originVersion, size } = row;
    then = { ...inode, kernelNodeId, content: "clean", hash: null, synced: "never", originNode, originVersion, size };
  }
  const found = await findFile(context, then, context.disk.trouble !== undefined);
  return createCacheFile(context, then, context.paths.cacheFile(kernelNodeId), found);
}

/**
 * Finds or makes the real file of a cache file that was opened without one, or with one that cannot be written. Readers
 * go on with the missing ranges of the new file. Reads of the former file that are under way may finish. Rejects with
 * ESTALE or the disk's error.
 */
export async function regain(context: Rows & LocalFiles & Remote & Host, cacheFile: OpenCacheFile): Promise<void> {
  const open = () =>
    alone(context, cacheFile.kernelNodeId, async () => {
      if (cacheFile.disk.isKept) return;
      const inode = requireCurrent(context, cacheFile.kernelNodeId);
      const found = await findFile(context, inode, false);
      // No await from here on, because readers look at the file and its missing ranges together.
      cacheFile.disk.replace(found);
      cacheFile.ranges.foundAnew(rangesOf(inode, found));
      context.log.info({ lineage: cacheFile.kernelNodeId }, "an open file has its place on the disk again");
    });
  await despiteFullDisk(context, 0, open);
}

async function findFile(context: Rows & LocalFiles & Host, inode: Inode, mayBeAbsent: boolean): Promise<FoundFile> {
  const { metadata, paths, runtime } = context;
  const { kernelNodeId } = inode;
  const path = paths.cacheFile(kernelNodeId);
  const row = metadata.cacheFiles.get(kernelNodeId);
  const canBeAbsent = mayBeAbsent && inode.content === "clean";
  let found: FoundFile | undefined;
  try {
    // If the state dir is gone, its path may lead to another mount's files.
    if (row !== undefined && context.disk.trouble !== "gone") found = await openExisting(context, inode, path, row);
  } catch (error) {
    if (!canBeAbsent) throw error;
  }
  if (found !== undefined) return found;
  if (inode.content !== "clean" && inode.size > 0) {
    throw new FsError("EIO", `the only copy of inode ${inode.id}, cache file ${kernelNodeId}, is not there`);
  }
  const origin = originOf(inode.originNode, inode.originVersion);
  if (origin === undefined && inode.size > 0) throw new FsError("EIO", `inode ${inode.id} has bytes of no version`);
  const missing = origin === undefined ? NO_RANGES : rangeOf(0, inode.size);
  const asFound = { ...WITHOUT_ORIGIN, origin, originSize: inode.size, missing, persistedMissing: missing };
  if (canBeAbsent) {
    const file = missingFile(inode.size);
    return { ...asFound, file, isNew: false, isKept: false };
  }
  if (row === undefined && context.fileState.isUnswept) await quarantineFile(context, path, `live-${kernelNodeId}`);
  metadata.transaction(() => {
    if (metadata.cacheFiles.get(kernelNodeId) !== undefined) metadata.cacheFiles.remove(kernelNodeId);
    metadata.cacheFiles.create({
      kernelNodeId,
      originNode: origin?.node ?? null,
      originVersion: origin?.version ?? null,
      originHash: origin === undefined || inode.content === "dirty" ? null : inode.hash,
      size: inode.size,
      bytes: 0,
      missing,
      usedAt: runtime.now(),
    });
  });
  context.fileState.evicting.delete(kernelNodeId);
  runtime.step("cache file: row made");
  const file = await makeFile(context, path, inode.size);
  return { ...asFound, file, isNew: true, isKept: true };
}

/** Makes an empty file, or one of `size` zeros. Call it after the row was made. */
async function makeFile(context: LocalFiles & Host, path: string, size: number): Promise<OpenFile> {
  const { paths, runtime } = context;
  await paths.prepareFolderOf(path);
  const file = (await openAbsent(runtime.files, path)) ?? (await openEmptied(context, path));
  runtime.step("cache file: made");
  if (size > 0) await closeIfFailed(file, () => file.truncate(size));
  return file;
}

async function openAbsent(files: Files, path: string): Promise<OpenFile | undefined> {
  try {
    return await files.open(path, "wx+");
  } catch (error) {
    if (hasCode(error, "EEXIST")) return undefined;
    throw error;
  }
}

/**
 * Empties a file that a crash left, because it may hold anything. Rejects with EIO if the state dir is gone, because
 * the files at its path may belong to another mount, and with EROFS or the disk's error.
 */
async function openEmptied({ disk, runtime }: LocalFiles & Host, path: string): Promise<OpenFile> {
  disk.lookForFolder();
  disk.requireChangeable();
  const file = await runtime.files.open(path, "w+");
  await closeIfFailed(file, () => file.truncate(0));
  return file;
}

/** The file, and what its row says of the ranges. */
type FoundFile = FoundOnDisk & Omit<FoundRanges, "isOriginal">;

const WITHOUT_ORIGIN: Omit<FoundRanges, "isOriginal"> = {
  origin: undefined,
  originHash: null,
  originSize: 0,
  missing: NO_RANGES,
  persistedMissing: NO_RANGES,
  unverified: NO_RANGES,
  truncatedTo: undefined,
};

/**
 * Opens the file if it agrees with its row. Undefined: there is no file, or it does not agree and its bytes can be
 * fetched again. Rejects with EIO when the row of changed content does not tell its missing ranges, or with the disk's
 * error.
 */
async function openExisting(
  context: Rows & LocalFiles & Host,
  inode: Inode,
  path: string,
  row: CacheFileRow,
): Promise<FoundFile | undefined> {
  const recorded = row.missing;
  const isKept = context.disk.trouble !== "readOnly";
  let file: OpenFile;
  try {
    file = await context.runtime.files.open(path, isKept ? "r+" : "r");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
  const found = await closeIfFailed(file, async () => {
    const { size } = await file.stat();
    if (inode.content === "clean" && (size !== inode.size || recorded === undefined)) return undefined;
    if (recorded === undefined) {
      throw new FsError("EIO", `what is missing of cache file ${inode.kernelNodeId} cannot be read`);
    }
    // A crash may have come after the file was truncated and before the row was changed.
    const missing = clipRanges(recorded, size);
    if (inode.content === "clean" && row.mustBeChecked) {
      const isWhole = missing.length === 0 && inode.hash !== null;
      if (!isWhole || (await context.runtime.files.hash(path)).hash !== inode.hash) return undefined;
      context.metadata.cacheFiles.update(inode.kernelNodeId, { mustBeChecked: false });
    }
    const origin = originOf(row.originNode, row.originVersion);
    const { originHash, originSize } = row;
    const isDirty = inode.content === "dirty";
    const unverified = clipRanges((isDirty ? row.unverified : undefined) ?? NO_RANGES, size);
    const ofRow = {
      originHash,
      originSize: isDirty ? originSize : inode.size,
      missing,
      persistedMissing: recorded,
      unverified,
    };
    return { ...ofRow, file, origin, truncatedTo: size, isNew: inode.synced === "never", isKept };
  });
  if (found === undefined) await file.close();
  return found;
}

async function closeIfFailed<T>(file: OpenFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** `preparedTime`: the mtime of the file, if it is ready for a writer. */
function createCacheFile(
  { metadata, cacheFiles, runtime }: Rows & LocalFiles & Host,
  inode: Inode,
  path: string,
  found: FoundFile,
  preparedTime?: string,
): OpenCacheFile {
  const { id, kernelNodeId, size } = inode;
  return cacheFiles.make({
    kernelNodeId,
    inode: id,
    path,
    ranges: new OriginRanges(metadata.cacheFiles, kernelNodeId, rangesOf(inode, found)),
    disk: new FileOnDisk(found),
    use: new FileUse({ keepsTimes: inode.content !== "clean", preparedTime }),
    changes: new FileChanges({
      isContentDirty: isContentDirty(inode),
      isDurable: isDurableByRow(metadata, inode),
      size,
      at: runtime.elapsed(),
    }),
  });
}

/**
 * True: the row, in memory or on the disk, says that the content is durable. Clean content counts too if a program
 * called fsync on it: after power loss it must not have to be fetched again.
 */
function isDurableByRow({ inodes }: Rows["metadata"], { id, content, synced, isFsynced }: Inode): boolean {
  if (content === "dirty" && (synced === "durable" || synced === "quarantined")) return true;
  return (content !== "dirty" && isFsynced) || inodes.formerlyDurable.has(id);
}

function rangesOf(inode: Inode, found: FoundFile): FoundRanges {
  const { origin, originHash, originSize, missing, persistedMissing, unverified, truncatedTo } = found;
  // Content that was given to another node by reference still comes from the version that it had before.
  const isSame = origin?.version === inode.originVersion || (originHash !== null && originHash === inode.hash);
  const isOriginal = origin !== undefined && inode.content !== "dirty" && isSame;
  return {
    origin,
    originHash: isOriginal ? inode.hash : originHash,
    originSize,
    missing,
    persistedMissing,
    unverified,
    truncatedTo,
    isOriginal,
  };
}

function originOf(node: string | null, version: string | null): Origin | undefined {
  return node === null || version === null ? undefined : { node, version };
}

/** True: the row says already that the content has changed since the last snapshot. */
export function isContentDirty(inode: Inode): boolean {
  return inode.content === "dirty" && inode.hash === null;
}

/* The stand-in for a cache file that could not be made. It holds nothing. */

const NEVER = { seconds: 0, nanoseconds: 0 };

/** All of its bytes count as missing. Changes are refused with ENOSPC: a writer has to open the file anew. */
function missingFile(size: number): OpenFile {
  const refuse = () => Promise.reject(new FsError("ENOSPC", "the file is not kept here: open it again"));
  return {
    // The caller lays the missing bytes over these zeros.
    async read(buffer, offset, length, position) {
      const end = Math.min(length, Math.max(0, size - position));
      buffer.fill(0, offset, offset + end);
      return end;
    },
    write: refuse,
    truncate: refuse,
    setTimes: refuse,
    allocate: refuse,
    sync: async () => {},
    stat: async () => ({ size, allocated: 0, mtime: NEVER, ctime: NEVER }),
    seek: async (kind, offset) => (kind === "hole" && offset < size ? offset : undefined),
    close: async () => {},
  };
}

/* Local files without a row: quarantined, and never removed unless they are empty. */

type Needs = Pick<LocalFiles & Host, "runtime" | "paths" | "log">;

/** Does nothing when there is no such file. Rejects with other errors of the disk. */
export async function quarantineFile({ runtime, paths, log }: Needs, path: string, name: string): Promise<void> {
  try {
    const { allocated } = await runtime.files.stat(path);
    if (allocated === 0) return await runtime.files.remove(path);
    const target = await paths.quarantine(path, name);
    log.warn({ path: target }, "a local file that belongs to nothing known was quarantined");
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}
