/**
 * The gateway's data were replaced by older ones, so it lost the later changes. Contents that are whole here may be the
 * only copies left. They become dirty again, as if a program had written them just now. If another file has the name at
 * the gateway by then, they become conflict copies; if none has it, they are made again. Knows nothing of the detection
 * of a rollback, and decides about no name: names follow the gateway.
 */
import { RemoteError, type RemoteErrorCode } from "../../client/errors.ts";
import { forEachAtOnce } from "../../lib/at-once.ts";
import { NO_RANGES } from "../../lib/ranges.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { After, InodeId, KernelNodeId, NodeRowId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Host, hasVersion, type LocalFiles, type Remote, type Rows } from "../core/index.ts";
import { isStandIn, type Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { READERS } from "./follow.ts";

/** Cache files looked at in one go. */
const SLICE = 500;
/** After so many failures of the gateway on one content, the content counts as lost, and is kept. */
const TRIES = 5;
/** Failures that are not about one content. */
const OF_ALL: readonly RemoteErrorCode[] = ["offline", "silent", "throttled", "unauthorized", "aborted"];

interface RollbackRecovery {
  /**
   * Asks the gateway for the version of every content that is whole here, and keeps each that it lacks. Rejects with a
   * RemoteError if the gateway does not answer, or fails for some contents. Another call goes on with the contents that
   * are left.
   */
  keepAll(signal: AbortSignal): Promise<void>;
  /** Forgets the answers, so that the next call asks for all contents again. */
  forget(): void;
}

export function createRollbackRecovery(context: Rows & LocalFiles & Remote & Host & Tree & Sync): RollbackRecovery {
  const { metadata, log } = context;
  /** Kernel node ids whose versions the gateway has. */
  const there = new Set<KernelNodeId>();
  /** The number of failures of the gateway, by kernel node id. */
  const failed = new Map<KernelNodeId, number>();

  async function lookAt(kernelNodeId: KernelNodeId, signal: AbortSignal): Promise<void> {
    const inode = currentOf(context, kernelNodeId);
    if (inode === undefined || there.has(kernelNodeId)) return;
    const heads = new Map<NodeRowId, string>();
    for (const { id, nodeId, base } of context.nodeRows.ofInode(inode.id)) {
      if (nodeId === null || base?.head == null || isStandIn(base.head)) continue;
      const isUnknown = (failed.get(kernelNodeId) ?? 0) >= TRIES;
      if (isUnknown || !(await isThere(context, nodeId, base.head, signal))) heads.set(id, base.head);
    }
    if (heads.size > 0 && (await isTrue(context, inode, signal))) keep(context, inode.id, kernelNodeId, heads);
    there.add(kernelNodeId);
  }

  return {
    async keepAll(signal) {
      let failure: unknown;
      for (let after: After<KernelNodeId> = 0; ; ) {
        const kernelNodeIds = metadata.cacheFiles.whole(after, SLICE);
        const last = kernelNodeIds.at(-1);
        if (last === undefined) break;
        after = last;
        await forEachAtOnce(kernelNodeIds, READERS, async (kernelNodeId) => {
          try {
            await lookAt(kernelNodeId, signal);
          } catch (error) {
            if (!(error instanceof RemoteError) || OF_ALL.includes(error.code)) throw error;
            failed.set(kernelNodeId, (failed.get(kernelNodeId) ?? 0) + 1);
            failure = error;
            log.debug({ err: error, lineage: kernelNodeId }, "the gateway could not be asked whether it has a content");
          }
        });
      }
      if (failure !== undefined) throw failure;
    },
    forget() {
      there.clear();
      failed.clear();
    },
  };
}

/** The inode, unless it was superseded or is dirty: dirty content is sent anyway. */
function currentOf({ metadata }: Rows, kernelNodeId: KernelNodeId): Inode | undefined {
  const inode = metadata.inodes.ofKernelNodeId(kernelNodeId);
  return inode?.kernelNodeId === kernelNodeId && inode.kind === "file" && inode.content !== "dirty" ? inode : undefined;
}

/** True: the gateway has this version. False also where that cannot be found out, so that the local bytes are kept. */
async function isThere(context: Remote & Sync, nodeId: string, version: string, signal: AbortSignal): Promise<boolean> {
  const node = await context.nodeReader.readOrHidden(nodeId, signal);
  if (node === undefined || node === "hidden") return false;
  if (node.head === version) return true;
  return (await hasVersion(context, nodeId, version, signal)) === true;
}

/**
 * True: the bytes are those of the version, by its hash or at least its size. Power loss or a broken disk may have
 * changed them, and changed bytes must not become the content of a node.
 */
async function isTrue(context: Rows & LocalFiles & Host, inode: Inode, signal: AbortSignal): Promise<boolean> {
  const { metadata, runtime, paths, disk, log } = context;
  const path = paths.cacheFile(inode.kernelNodeId);
  try {
    if (inode.hash !== null) return (await runtime.files.hash(path, signal)).hash === inode.hash;
    const { size } = await runtime.files.stat(path);
    return size === inode.size && metadata.cacheFiles.get(inode.kernelNodeId)?.mustBeChecked === false;
  } catch (error) {
    if (signal.aborted || disk.trouble !== undefined) throw error;
    log.warn({ err: error, inode: inode.id }, "the local bytes of a content that the gateway has lost cannot be read");
    return false;
  }
}

/** Makes the content dirty in one transaction, unless the file has another content by now, or is gone. */
function keep(
  context: Rows & LocalFiles & Host & Tree,
  id: InodeId,
  kernelNodeId: KernelNodeId,
  heads: ReadonlyMap<NodeRowId, string>,
): void {
  const { metadata, cacheFiles, dirtyLog, log, fileState } = context;
  metadata.transaction(() => {
    const inode = currentOf(context, kernelNodeId);
    const isHere = isWhole(metadata.cacheFiles.get(kernelNodeId)) && !fileState.isEvicting(kernelNodeId);
    if (inode?.id !== id || !isHere) return;
    const rows = context.nodeRows.ofInode(id);
    const behind = rows.filter((row) => row.base?.head != null && heads.get(row.id) === row.base.head);
    if (behind.length === 0) return;
    // With the hash in base, the content would count as the version that is lost.
    for (const { id: row, base } of behind) {
      if (base !== null) metadata.nodes.update(row, { base: { ...base, hash: null } });
    }
    const noOrigin = { originNode: null, originVersion: null };
    const changed = { content: "dirty", changes: inode.changes + 1, hash: null, synced: "never" } as const;
    const kept = metadata.inodes.update(id, { ...changed, ...noOrigin });
    metadata.cacheFiles.update(kernelNodeId, { ...noOrigin, originHash: null, unverified: NO_RANGES });
    // A change made here keeps its age, so that a drain under way does not end without it.
    for (const row of context.nodeRows.ofInode(id)) context.queue.setNodeDirty(row, row.changedAt);
    metadata.afterCommit(() => {
      // The file may be open, and programs may write to it. No check may compare it with the lost version any more.
      cacheFiles.get(kernelNodeId)?.leaveOriginForGood();
      context.dirtyFiles.dirty(kept);
      void dirtyLog.flush();
      log.warn({ inode: id, size: inode.size }, "the gateway has lost this content: it is kept, and sent again");
    });
  });
}
