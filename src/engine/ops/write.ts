/** Calls that change bytes or make them durable: write, truncate, fallocate, flush, fsync. */

import { withoutPrivileges } from "../../lib/set-id-bits.ts";
import { type Caller, FsError, fromDisk, type HandleId, type KernelNodeId } from "../api/index.ts";
import type { CacheFile, Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { fileOf, requireShown, whenFetched, writableOf } from "./open.ts";
import { untilGatewayHas } from "./until-remote.ts";

/**
 * Resolves to how many bytes were written; fewer than all when the disk became full. For a file opened to append too,
 * the kernel gives the right `offset`.
 */
export async function write(
  context: Rows & Kernel & Outgoing,
  caller: Caller,
  handleId: HandleId,
  offset: number,
  data: Uint8Array,
  options: { killPrivileges: boolean },
): Promise<number> {
  const { cacheFile } = writableOf(context, handleId);
  cacheFile.threadWentOn(caller);
  const written = await cacheFile.write(handleId, offset, data);
  if (options.killPrivileges) dropPrivileges(context, cacheFile);
  context.snapshots.whenQuiet(cacheFile);
  return written;
}

/** Removes set-id bits. The answer to a write shows no mode, so the kernel is told. */
function dropPrivileges({ metadata }: Rows, cacheFile: CacheFile): void {
  const inode = metadata.inodes.get(cacheFile.inode);
  const mode = withoutPrivileges(inode?.attributes.mode);
  if (inode === undefined || mode === undefined) return;
  const attributes = { ...inode.attributes, mode };
  metadata.changed.ours(() => metadata.inodes.update(inode.id, { attributes }));
}

export async function truncate(
  context: Rows & LocalFiles & Kernel & Remote & Tree & Outgoing,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  size: number,
  handleId?: HandleId,
): Promise<void> {
  const inode = context.requirements.inode(kernelNodeId);
  if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
  if (inode.kind !== "file") throw new FsError("EINVAL", `a ${inode.kind} has no size`);
  if (handleId !== undefined && context.handles.has(handleId)) {
    const { cacheFile } = writableOf(context, handleId);
    await context.cacheFiles.whileTruncating(kernelNodeId, () => cacheFile.truncate(caller, size));
    context.snapshots.whenQuiet(cacheFile);
    return;
  }
  context.requirements.writable();
  requireShown(context, inode, kernelNodeId);
  const truncateIt = async () => {
    const opened = await context.cacheFiles.open(kernelNodeId, { write: true });
    try {
      await opened.truncate(caller, size);
    } finally {
      await opened.close({ write: true });
    }
  };
  await context.cacheFiles.whileTruncating(kernelNodeId, () =>
    size > 0 ? whenFetched(context, kernelNodeId, caller.signal, truncateIt) : truncateIt(),
  );
}

export async function allocate(
  context: Rows & Kernel & Outgoing,
  caller: Caller,
  handleId: HandleId,
  mode: number,
  offset: number,
  length: number,
): Promise<void> {
  const { cacheFile } = writableOf(context, handleId);
  await cacheFile.allocate(mode, offset, length);
  // Unlike a WRITE, this request does not say whether the set-id bits may stay.
  if (caller.uid !== 0) dropPrivileges(context, cacheFile);
  context.snapshots.whenQuiet(cacheFile);
}

/**
 * close(2): afterwards bytes and rows survive a crash of the daemon. With durability "remote" the gateway has them too.
 */
export async function flush(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree & Sync & Outgoing,
  caller: Caller,
  handleId: HandleId,
): Promise<void> {
  const { cacheFile, write: isWriter } = fileOf(context, handleId);
  if (!isWriter) return;
  cacheFile.threadWentOn(caller);
  await onDisk(() => cacheFile.persistStat());
  if (cacheFile.isContentDirty) requireFolder(context);
  context.runtime.step("flush: recorded");
  if (context.settings.durability === "remote") await untilGatewayHas(context, cacheFile.inode, caller.signal);
}

/** fsync(2): afterwards bytes, rows and name are durable. With durability "remote" the gateway has them too. */
export async function fsync(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host & Tree & Sync & Outgoing,
  caller: Caller,
  handleId: HandleId,
  _dataOnly: boolean,
): Promise<void> {
  const { cacheFile, write: isWriter } = fileOf(context, handleId);
  await onDisk(async () => {
    await cacheFile.detectWrites();
    if (cacheFile.isContentDirty) requireFolder(context);
    await cacheFile.makeDurable();
    await context.syncRows();
    context.runtime.step("fsync: rows synced");
  });
  if (isWriter && context.settings.durability === "remote")
    await untilGatewayHas(context, cacheFile.inode, caller.signal);
  else context.snapshots.afterSync(cacheFile);
}

/** fsync of a folder: names are rows, so the rows are synced. */
export function syncNames(context: Rows & LocalFiles): Promise<void> {
  requireFolder(context);
  return onDisk(() => context.syncRows());
}

/**
 * Throws EIO if the state dir is gone: rows and bytes there would never be found again. Written bytes are still sent as
 * long as the file is open.
 */
function requireFolder({ disk }: LocalFiles): void {
  disk.lookForFolder();
  if (disk.trouble === "gone") disk.requireChangeable();
}

async function onDisk(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw fromDisk(error, "the local disk failed");
  }
}
