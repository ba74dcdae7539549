/** Lookups of names and attributes: lookup, getattr, access, statfs. */

import {
  type Attributed,
  type Caller,
  type Found,
  FsError,
  type KernelNodeId,
  type NegativeEntry,
  type SpaceInfo,
} from "../api/index.ts";
import {
  type Context,
  type Host,
  type Kernel,
  type LocalFiles,
  noteNegative,
  type Remote,
  type Rows,
} from "../core/index.ts";
import { visitFolder } from "../remote/index.ts";
import { attributed, folderOf, found, inodeOf, requireWritable, validMs } from "../tree/index.ts";
import { prefetchFolders } from "./prefetch-folders.ts";

export async function lookup(
  context: Context,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
): Promise<Found | NegativeEntry> {
  const { metadata } = context;
  const folder = folderOf(context, parent);
  visitFolder(context, folder.id);
  let entry = metadata.entries.find(folder.id, name);
  if (entry === undefined && folder.listed === null) {
    await prefetchFolders(context, folder.id, caller.signal);
    entry = metadata.entries.find(folder.id, name);
  }
  const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  if (inode === undefined) {
    // A negative entry only while the journal is live: then the kernel is told as soon as the name is there.
    if (context.fresh.isLive() && noteNegative(context, folder.id, name)) {
      return { lineage: undefined, entryValidMs: validMs(context) };
    }
    throw new FsError("ENOENT", `no ${JSON.stringify(name)} in folder ${folder.id}`);
  }
  return found(context, inode);
}

/** A superseded kernel node id still answers, with the size of its old bytes. */
export async function getattr(context: Rows & LocalFiles & Kernel & Host, lineage: KernelNodeId): Promise<Attributed> {
  return attributed(context, inodeOf(context, lineage), lineage);
}

export async function access(context: Rows & LocalFiles & Remote, lineage: KernelNodeId, mask: number): Promise<void> {
  const W_OK = 2;
  inodeOf(context, lineage);
  if ((mask & W_OK) !== 0) requireWritable(context);
}

export async function statfs(context: LocalFiles & Remote & Host): Promise<SpaceInfo> {
  const BLOCK = 4096;
  const { runtime, paths, quota } = context;
  const disk = await runtime.files.space(paths.root);
  const { limit, used } = quota;
  // With a quota, everything in the workspace counts, sent or not. What is available must also fit on this disk until
  // it is sent.
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
