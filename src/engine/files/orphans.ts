/** Orphans and superseded kernel node ids: kept while the kernel or a handle knows them. */
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { Host, Kernel, Remote, Rows } from "../core/index.ts";
import { dropKernelNodeId } from "./open-close.ts";
import type { LocalFiles } from "./room.ts";
import { removeSnapshot } from "./snapshot-source.ts";
import { forgetFailures } from "./unreadable.ts";

/**
 * The kernel forgot the kernel node id. If the id is superseded, its bytes go. If the inode is an orphan, the inode
 * goes. An open file goes when it is closed: its RELEASE, which the kernel sent before the FORGET, may still be under
 * way. A file that an upload needs goes when the upload is over.
 */
export function dropIfUnused(context: Rows & LocalFiles & Kernel & Remote & Host, kernelNodeId: KernelNodeId): void {
  const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  if (inode === undefined || inode.id === ROOT_INODE) return;
  if (context.cacheFiles.has(kernelNodeId)) {
    context.fileState.afterClose.set(kernelNodeId, () => dropAtLast(context, kernelNodeId));
    return;
  }
  context.metadata.transaction(() => {
    if (inode.kernelNodeId !== kernelNodeId) dropKernelNodeId(context, kernelNodeId);
    if (inode.kernelNodeId !== kernelNodeId && !isRenewedOrphan(context, inode)) return;
    if (context.metadata.entries.links(inode.id) === 0) removeInode(context, inode);
  });
}

/** The file was closed, or its upload is over: the removal is tried once more. */
function dropAtLast(context: Rows & LocalFiles & Kernel & Remote & Host, kernelNodeId: KernelNodeId): void {
  try {
    dropIfUnused(context, kernelNodeId);
  } catch (error) {
    keepForgottenByKernel(context, kernelNodeId, error);
  }
}

/** The rows did not take the removal: it is repeated when they can be changed again (on-forget.ts). */
export function keepForgottenByKernel(
  { fileState, log }: Pick<LocalFiles & Host, "fileState" | "log">,
  kernelNodeId: KernelNodeId,
  error: unknown,
): void {
  log.warn({ err: error, lineage: kernelNodeId }, "a forgotten kernel node id could not be removed yet");
  fileState.forgetsToRepeat.add(kernelNodeId);
}

/**
 * The inode lost its last name, or the name is another file's now, and no program here did that. An open by that name
 * may be on its way, and its writes would go to a file without a name. A new kernel node id makes that open fail with
 * ESTALE, so the kernel looks the name up again.
 */
export function renewIfOrphan({ metadata }: Pick<Rows, "metadata">, id: InodeId): void {
  const inode = metadata.inodes.get(id);
  if (inode?.kind === "file" && metadata.entries.links(id) === 0) metadata.inodes.replaceKernelNodeId(id, {});
}

/**
 * True: the inode is an orphan, and its present kernel node id is the only one left. The kernel was never told of that
 * id (renewIfOrphan), so no FORGET will come for it.
 */
function isRenewedOrphan({ metadata }: Rows, { id, kernelNodeId }: Inode): boolean {
  const isLast = metadata.inodes.kernelNodeIds(id).every((known) => known === kernelNodeId);
  return isLast && metadata.entries.links(id) === 0;
}

/**
 * Call it in a transaction. Removes an orphan with all its kernel node ids, snapshots and bytes, unless one of them is
 * open.
 */
export function removeInode(context: Rows & LocalFiles & Kernel & Remote & Host, inode: Inode): void {
  const { metadata, cacheFiles } = context;
  const kernelNodeIds = metadata.inodes.kernelNodeIds(inode.id);
  if (kernelNodeIds.some((kernelNodeId) => cacheFiles.has(kernelNodeId))) return;
  if (isOpenFolder(context, inode.id)) return;
  // The bytes of a detached file have yet to get a name (sync/detached-files.ts).
  if (metadata.detachedFiles.get(inode.id) !== undefined && inode.content !== "clean") return;
  // Snapshots that are not being sent are not wanted any more.
  for (const snapshot of metadata.snapshots.unusedOf(inode.id)) removeSnapshot(context, snapshot);
  // A snapshot that is being sent still needs its bytes: the inode goes when the upload is over, or at the next start.
  if (metadata.snapshots.newestOf(inode.id) !== undefined) {
    context.fileState.afterSent.set(inode.id, () => dropAtLast(context, inode.kernelNodeId));
    return;
  }
  for (const kernelNodeId of kernelNodeIds) dropKernelNodeId(context, kernelNodeId);
  metadata.inodes.remove(inode.id);
  context.lastSnapshots.delete(inode.id);
  context.cancellations.delete(inode.id);
  forgetFailures(context, inode);
}

function isOpenFolder(context: Kernel, inode: InodeId): boolean {
  for (const handle of context.handles.values()) if (handle.kind === "folder" && handle.inode === inode) return true;
  return false;
}
