/**
 * Names that go: unlink and rmdir, each one commit. The inode behind a name goes later, in another commit, once the
 * kernel forgets it (files/orphans.ts): until then programs may have it open.
 */
import type { Entry } from "../../metadata/entries.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Caller, FsError, type KernelNodeId } from "../api/index.ts";
import type { Context, LocalFiles, Remote, Rows } from "../core/index.ts";
import { completeFolder } from "../remote/index.ts";
import { folderOf, removeName, requireWritable, rowOfFolder } from "../tree/index.ts";
import { commitRequest } from "./request-log.ts";

/** The entry, or ENOENT. A folder that is not completely known is listed first. */
export async function requireEntry(
  context: Context,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
): Promise<{ entry: Entry; inode: Inode }> {
  const folder = folderOf(context, parent);
  if (context.metadata.entries.find(folder.id, name) === undefined && folder.listed === null) {
    await completeFolder(context, folder.id, caller.signal);
  }
  return entryAt(context, parent, name);
}

/** The entry as it is now, or ENOENT. */
export function entryAt(context: Rows, parent: KernelNodeId, name: string): { entry: Entry; inode: Inode } {
  const entry = context.metadata.entries.find(folderOf(context, parent).id, name);
  const inode = entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
  if (entry === undefined || inode === undefined) throw new FsError("ENOENT", `no ${JSON.stringify(name)}`);
  return { entry, inode };
}

/** Throws EACCES at once when the token may not delete, not only when the deletion is sent. */
export function requireDeletable(context: Rows & LocalFiles & Remote, entry: Entry): void {
  requireWritable(context);
  const row = context.metadata.nodes.ofEntry(entry.id);
  if (row?.nodeId != null && !context.network.may("node.file.delete")) {
    throw new FsError("EACCES", "the token lacks node.file.delete");
  }
}

export async function unlink(context: Context, caller: Caller, parent: KernelNodeId, name: string): Promise<void> {
  requireWritable(context);
  await requireEntry(context, caller, parent, name);
  const removed = commitRequest(context, caller, () => {
    const { entry, inode } = entryAt(context, parent, name);
    if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
    requireDeletable(context, entry);
    removeName(context, entry);
    return inode;
  });
  context.dirtyFiles.named(removed.id);
  context.runtime.step("unlink: gone");
}

export async function rmdir(context: Context, caller: Caller, parent: KernelNodeId, name: string): Promise<void> {
  requireWritable(context);
  const { inode: known } = await requireEntry(context, caller, parent, name);
  if (known.kind === "folder") await requireKnown(context, caller, known);
  commitRequest(context, caller, () => {
    const { entry, inode } = entryAt(context, parent, name);
    requireEmptyFolder(context, inode);
    requireDeletable(context, entry);
    removeName(context, entry);
  });
  context.runtime.step("rmdir: gone");
}

/** Lists the folder completely, so that "empty" can be judged here. */
export async function requireKnown(context: Context, caller: Caller, folder: Inode): Promise<void> {
  if (folder.listed === null) await completeFolder(context, folder.id, caller.signal);
}

export function requireEmptyFolder(context: Rows, inode: Inode): void {
  if (inode.kind !== "folder") throw new FsError("ENOTDIR", "not a folder");
  if (!context.metadata.entries.isEmpty(inode.id)) throw new FsError("ENOTEMPTY", "the folder is not empty");
  // An arrival, which has no name here yet, is content too.
  const nodeId = rowOfFolder(context, inode.id)?.nodeId;
  if (nodeId != null && context.metadata.arrivals.isAnyIn(nodeId)) {
    throw new FsError("ENOTEMPTY", "the folder is not empty");
  }
}
