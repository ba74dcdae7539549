/**
 * Takeover of a mount: programs and the kernel go on with the handles they have. Each open file is opened again, as it
 * was, before anything is served. Passthrough files stay with the kernel, under their backing ids. Changes that writers
 * made since the last write detection count as written.
 */
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { KeptHandle } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Rows } from "../core/index.ts";
import type { Outgoing } from "../upload/index.ts";

/** The state with which this mount goes on. */
export interface Resumed {
  readonly handles: readonly KeptHandle[];
}

/** The kernel node ids that programs have open for writing. */
export function writtenBy({ handles }: Resumed): Set<KernelNodeId> {
  return new Set(handles.filter(({ write }) => write).map(({ kernelNodeId }) => kernelNodeId));
}

/** Takes over all handles. A file that cannot be opened again loses its handles. Never rejects for that. */
export async function resumeHandles(
  context: Rows & LocalFiles & Kernel & Host & Outgoing,
  { handles }: Resumed,
): Promise<void> {
  const files = new Map<KernelNodeId, KeptHandle[]>();
  for (const handle of handles) {
    if (handle.kind === "folder") resumeFolder(context, handle);
    else files.set(handle.kernelNodeId, [...(files.get(handle.kernelNodeId) ?? []), handle]);
  }
  for (const [kernelNodeId, ofFile] of files) {
    try {
      await resumeFile(context, kernelNodeId, ofFile);
    } catch (error) {
      // Programs that have this file open get errors. All others go on.
      context.log.error(
        { err: error, lineage: kernelNodeId, handles: ofFile.length },
        "an open file could not be taken over",
      );
      for (const { id } of ofFile) context.handleTable.remove(id);
    }
  }
}

function resumeFolder(context: Rows & Kernel, { id, kernelNodeId }: KeptHandle): void {
  const folder = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  // The rows are the listing, and their ids are its cookies. So the listing goes on where it was.
  if (folder !== undefined) context.handles.set(id, { kind: "folder", inode: folder.id, directoryStream: undefined });
  else context.handleTable.remove(id);
}

async function resumeFile(
  context: LocalFiles & Kernel & Outgoing,
  kernelNodeId: KernelNodeId,
  handles: readonly KeptHandle[],
): Promise<void> {
  const cacheFile = await context.cacheFiles.resume(kernelNodeId, handles);
  context.snapshots.whenQuiet(cacheFile);
  for (const { id, write, append } of handles) {
    context.handles.set(id, { kind: "file", cacheFile, write, append, reader: cacheFile.createReader() });
  }
}

/**
 * Takes over files that passthrough writers have closed and may still have mapped. This daemon waits for the end of the
 * mappings, as the earlier one did.
 */
export async function resumeAllMapped(
  context: LocalFiles & Host & Outgoing,
  kernelNodeIds: readonly KernelNodeId[],
): Promise<void> {
  for (const kernelNodeId of kernelNodeIds) {
    try {
      await resumeMapped(context, kernelNodeId);
    } catch (error) {
      context.log.error(
        { err: error, lineage: kernelNodeId },
        "a file that a program has mapped could not be taken over",
      );
    }
  }
}

async function resumeMapped(context: LocalFiles & Outgoing, kernelNodeId: KernelNodeId): Promise<void> {
  const cacheFile = await context.cacheFiles.resumeMapped(kernelNodeId);
  context.snapshots.whenQuiet(cacheFile);
  await cacheFile.closePassthrough();
}
