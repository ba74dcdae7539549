/** Inodes without a name and superseded lineages: kept while the kernel or a handle knows them. */
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { Context, Host, Kernel, LocalFiles, Rows } from "../core/index.ts";
import { dropKernelNodeId } from "./open-close.ts";
import { removeSnapshot } from "./snapshot-source.ts";
import { forgetFailures } from "./unreadable.ts";

/**
 * The kernel forgot the lineage. If it is superseded, its bytes go; if the inode has no name left,
 * the inode goes. What is open (its release, sent before, may still be under way) goes once it is
 * closed; what a cut needs that is being sent, once that is over.
 */
export function dropIfUnused(context: Context, lineage: KernelNodeId): void {
  const inode = context.metadata.inodes.ofKernelNodeId(lineage);
  if (inode === undefined || inode.id === ROOT_INODE) return;
  if (context.cacheFiles.has(lineage)) {
    context.fileState.afterClose.set(lineage, () => dropAtLast(context, lineage));
    return;
  }
  context.metadata.transaction(() => {
    if (inode.lineage !== lineage) dropKernelNodeId(context, lineage);
    if (inode.lineage !== lineage && !isHandedOver(context, inode)) return;
    if (context.metadata.entries.links(inode.id) === 0) removeInode(context, inode);
  });
}

/** What was in the way is over. */
function dropAtLast(context: Context, lineage: KernelNodeId): void {
  try {
    dropIfUnused(context, lineage);
  } catch (error) {
    keepForgottenByKernel(context, lineage, error);
  }
}

/** The rows did not take it: tried again when they can be changed (forgotten.ts). */
export function keepForgottenByKernel(
  { fileState, log }: Pick<LocalFiles & Host, "fileState" | "log">,
  lineage: KernelNodeId,
  error: unknown,
): void {
  log.warn({ err: error, lineage }, "what the kernel forgot could not be removed yet");
  fileState.forgetsToRepeat.add(lineage);
}

/**
 * Its last name went, or is another file's now, and no program here did that. An open by that name
 * may be on its way, and what it wrote would be in no file: it is to look the name up again.
 */
export function handOver({ metadata }: Pick<Rows, "metadata">, id: InodeId): void {
  const inode = metadata.inodes.get(id);
  if (inode?.kind === "file" && metadata.entries.links(id) === 0) metadata.inodes.replaceKernelNodeId(id, {});
}

/** The kernel was never told of the lineage it has now, so will not forget it, and has forgotten all others. */
function isHandedOver({ metadata }: Rows, { id, lineage }: Inode): boolean {
  const isLast = metadata.inodes.lineages(id).every((known) => known === lineage);
  return isLast && metadata.entries.links(id) === 0;
}

/** Within a transaction: removes a nameless inode with all its lineages, cuts and bytes, unless one is open. */
export function removeInode(context: Context, inode: Inode): void {
  const { metadata, cacheFiles } = context;
  const lineages = metadata.inodes.lineages(inode.id);
  if (lineages.some((lineage) => cacheFiles.has(lineage))) return;
  if (isOpenFolder(context, inode.id)) return;
  // What was written to it has yet to get a name (sync/detached-files.ts).
  if (metadata.detachedFiles.get(inode.id) !== undefined && inode.content !== "clean") return;
  // One that waited to be sent is wanted by nobody any more.
  for (const snapshot of metadata.snapshots.unusedOf(inode.id)) removeSnapshot(context, snapshot);
  // A cut that is being sent still needs its bytes: it goes when that is over, or with the next mount.
  if (metadata.snapshots.newestOf(inode.id) !== undefined) {
    context.fileState.afterSent.set(inode.id, () => dropAtLast(context, inode.lineage));
    return;
  }
  for (const lineage of lineages) dropKernelNodeId(context, lineage);
  metadata.inodes.remove(inode.id);
  context.lastSnapshots.delete(inode.id);
  context.cancellations.delete(inode.id);
  forgetFailures(context, inode);
}

function isOpenFolder(context: Kernel, inode: InodeId): boolean {
  for (const handle of context.handles.values()) if (handle.kind === "folder" && handle.inode === inode) return true;
  return false;
}
