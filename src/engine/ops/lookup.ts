/** Lookups of names and attributes: lookup, getattr, access, statfs. */

import {
  type Attributed,
  type Caller,
  type Found,
  FsError,
  fromDisk,
  type KernelNodeId,
  type NegativeEntry,
  type SpaceInfo,
} from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Prefetch } from "./prefetch.ts";

export async function lookup(
  context: Rows & Kernel & Tree & Incoming & Prefetch,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
): Promise<Found | NegativeEntry> {
  const { metadata } = context;
  const folder = context.requirements.folder(parent);
  context.folders.visit(folder.id);
  let entry = metadata.entries.find(folder.id, name);
  if (entry === undefined && folder.listed === null) {
    await context.folderPrefetch.complete(folder.id, caller.signal);
    entry = metadata.entries.find(folder.id, name);
  }
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  if (inode === undefined) {
    // The kernel gets a negative entry only while the journal is live: then it is told as soon as the name exists.
    if (context.fresh.isLive() && context.kernel.noteNegative(folder.id, name)) {
      return { kernelNodeId: undefined, entryValidMs: context.fresh.validMs() };
    }
    throw new FsError("ENOENT", `no ${JSON.stringify(name)} in folder ${folder.id}`);
  }
  return context.stats.found(inode);
}

/** For a superseded kernel node id, the answer has the size of its old bytes. */
export async function getattr(context: Tree, kernelNodeId: KernelNodeId): Promise<Attributed> {
  return context.stats.attributed(context.requirements.inode(kernelNodeId), kernelNodeId);
}

export async function access(context: Tree, kernelNodeId: KernelNodeId, mask: number): Promise<void> {
  const W_OK = 2;
  context.requirements.inode(kernelNodeId);
  if ((mask & W_OK) !== 0) context.requirements.writable();
}

export async function statfs(context: LocalFiles & Remote & Host): Promise<SpaceInfo> {
  const BLOCK = 4096;
  const { runtime, paths, quota } = context;
  const disk = await runtime.files.space(paths.root).catch((error: unknown) => {
    throw fromDisk(error, "the room of the disk cannot be told");
  });
  const { limit, used } = quota;
  // With a quota, everything in the workspace counts, sent or not. New bytes must also fit on this disk until they are
  // sent.
  const room = limit === undefined ? undefined : Math.max(0, limit - used - (await quota.measure()));
  return {
    blockSize: BLOCK,
    blocks: Math.floor((limit ?? disk.total) / BLOCK),
    free: Math.floor((room ?? disk.free) / BLOCK),
    available: Math.floor(Math.min(disk.available, room ?? disk.available) / BLOCK),
    files: 0xffff_ffff,
    filesFree: 0x7fff_ffff,
    nameLength: 255,
  };
}
