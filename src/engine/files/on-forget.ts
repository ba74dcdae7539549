/**
 * FORGET: orphans, and bytes of superseded kernel node ids, go once the kernel forgot them. No flow waits for that, so
 * orphans that are forgotten at about the same moment go with one commit: the removal of a folder leads to one FORGET
 * for each file. A crash before the commit leaves the same state as a crash before the FORGET: the next mount removes
 * them.
 */
import type { Inode } from "../../metadata/inodes.ts";
import type { KernelNodeId } from "../api/index.ts";
import type { Host, Kernel, Remote, Rows } from "../core/index.ts";
import { dropIfUnused, keepForgottenByKernel } from "./orphans.ts";
import type { LocalFiles } from "./room.ts";

/** Milliseconds from the first FORGET to the commit. */
export const FORGET_GATHER_MS = 20;
/** Orphans per commit: programs wait while it runs. */
export const SLICE = 32;

export function onForget(
  context: Rows & LocalFiles & Kernel & Remote & Host,
  kernelNodeIds: readonly { readonly kernelNodeId: KernelNodeId }[],
): void {
  for (const { kernelNodeId } of kernelNodeIds) forgetOne(context, kernelNodeId);
}

function forgetOne(context: Rows & LocalFiles & Kernel & Remote & Host, kernelNodeId: KernelNodeId): void {
  const { metadata, fileState, cacheFiles } = context;
  try {
    const inode = metadata.inodes.ofKernelNodeId(kernelNodeId);
    if (inode === undefined) return;
    // An orphan cannot be found by a name any more, so it can wait for the commit. Any other kernel node id is decided
    // on by its present state.
    const isOrphan = inode.kernelNodeId === kernelNodeId && metadata.entries.links(inode.id) === 0;
    if (isOrphan && !cacheFiles.has(kernelNodeId)) {
      fileState.forgottenByKernel.set(kernelNodeId, inode.id);
      dropLater(context, FORGET_GATHER_MS);
    } else dropIfUnused(context, kernelNodeId);
  } catch (error) {
    keepForgottenByKernel(context, kernelNodeId, error);
  }
}

/**
 * The kernel is told of an inode, so earlier FORGETs do not count any more. Otherwise an inode that got a name again
 * and lost it once more would be removed before its next FORGET.
 */
export function onLookup({ fileState }: Pick<LocalFiles, "fileState">, { id, kernelNodeId }: Inode): void {
  fileState.forgotten(kernelNodeId);
  fileState.afterClose.delete(kernelNodeId);
  fileState.afterSent.delete(id);
  for (const [forgottenByKernel, inode] of fileState.forgottenByKernel)
    if (inode === id) fileState.forgottenByKernel.delete(forgottenByKernel);
}

function dropLater(context: Rows & LocalFiles & Kernel & Remote & Host, wait: number): void {
  const { fileState, runtime } = context;
  fileState.forgetTimer ??= runtime.setTimer(wait, () => {
    fileState.forgetTimer = undefined;
    dropSome(context);
    if (fileState.forgottenByKernel.size > 0) dropLater(context, 0);
  });
}

/** Removes the waiting orphans at once. For a takeover: the next daemon would not know that they were forgotten. */
export function dropForgottenByKernel(context: Rows & LocalFiles & Kernel & Remote & Host): void {
  const { fileState } = context;
  fileState.forgetTimer?.cancel();
  fileState.forgetTimer = undefined;
  while (fileState.forgottenByKernel.size > 0) dropSome(context);
}

function dropSome(context: Rows & LocalFiles & Kernel & Remote & Host): void {
  const { fileState } = context;
  const some = [...fileState.forgottenByKernel.keys()].slice(0, SLICE);
  for (const kernelNodeId of some) fileState.forgottenByKernel.delete(kernelNodeId);
  dropTogether(context, some);
}

/** Drops these kernel node ids, SLICE at most, with one commit. */
export function dropTogether(context: Rows & LocalFiles & Kernel & Remote & Host, some: readonly KernelNodeId[]): void {
  const { metadata } = context;
  try {
    const parts = metadata.transaction(() =>
      some.map((kernelNodeId) => ({ kernelNodeId, part: metadata.part(() => dropIfUnused(context, kernelNodeId)) })),
    );
    for (const { kernelNodeId, part } of parts)
      if ("error" in part) keepForgottenByKernel(context, kernelNodeId, part.error);
  } catch (error) {
    for (const kernelNodeId of some) keepForgottenByKernel(context, kernelNodeId, error);
  }
}

/** The rows can be changed again: repeats the removals that failed. */
export function repeatForgets(context: Rows & LocalFiles & Kernel & Remote & Host): void {
  const { forgetsToRepeat } = context.fileState;
  const again = [...forgetsToRepeat].map((kernelNodeId) => ({ kernelNodeId }));
  forgetsToRepeat.clear();
  onForget(context, again);
  dropForgottenByKernel(context);
}
