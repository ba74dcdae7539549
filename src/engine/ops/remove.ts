/**
 * Removes names: unlink and rmdir, one commit each. The inode behind a name goes later, in another commit, once the
 * kernel forgets it (files/orphans.ts): until then programs may have it open.
 */
import type { Entry } from "../../metadata/entries.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Caller, FsError, type KernelNodeId } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import { commitRequest } from "./request-log.ts";

/** The entry and its inode; throws ENOENT. A folder that is not completely known is listed first. */
export async function requireEntry(
  context: Rows & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
): Promise<{ entry: Entry; inode: Inode }> {
  const folder = context.requirements.folder(parent);
  if (context.metadata.entries.find(folder.id, name) === undefined && folder.listed === null) {
    await context.folders.complete(folder.id, caller.signal);
  }
  return entryAt(context, parent, name);
}

/** The entry and its inode as they are now; throws ENOENT. */
export function entryAt(context: Rows & Tree, parent: KernelNodeId, name: string): { entry: Entry; inode: Inode } {
  const entry = context.metadata.entries.find(context.requirements.folder(parent).id, name);
  const inode = entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
  if (entry === undefined || inode === undefined) throw new FsError("ENOENT", `no ${JSON.stringify(name)}`);
  return { entry, inode };
}

/** Throws EACCES at once when the token may not delete, not only when the deletion is sent. */
export function requireDeletable(context: Rows & Remote & Tree, entry: Entry): void {
  context.requirements.writable();
  const row = context.metadata.nodes.ofEntry(entry.id);
  if (row?.nodeId != null && !context.network.may("node.file.delete")) {
    throw new FsError("EACCES", "the token lacks node.file.delete");
  }
}

export async function unlink(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
): Promise<void> {
  context.requirements.writable();
  await requireEntry(context, caller, parent, name);
  const removed = commitRequest(context, caller, () => {
    const { entry, inode } = entryAt(context, parent, name);
    if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
    requireDeletable(context, entry);
    context.names.remove(entry);
    return inode;
  });
  context.dirtyFiles.named(removed.id);
  context.runtime.step("unlink: gone");
}

export async function rmdir(
  context: Rows & Kernel & Remote & Host & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
): Promise<void> {
  context.requirements.writable();
  const { inode: known } = await requireEntry(context, caller, parent, name);
  if (known.kind === "folder") await requireKnown(context, caller, known);
  commitRequest(context, caller, () => {
    const { entry, inode } = entryAt(context, parent, name);
    requireEmptyFolder(context, inode);
    requireDeletable(context, entry);
    context.names.remove(entry);
  });
  context.runtime.step("rmdir: gone");
}

/** Lists the folder completely, so that it is known here whether it is empty. */
export async function requireKnown(context: Incoming, caller: Caller, folder: Inode): Promise<void> {
  if (folder.listed === null) await context.folders.complete(folder.id, caller.signal);
}

/** Throws ENOTDIR or ENOTEMPTY. */
export function requireEmptyFolder(context: Rows & Tree, inode: Inode): void {
  if (inode.kind !== "folder") throw new FsError("ENOTDIR", "not a folder");
  if (!context.metadata.entries.isEmpty(inode.id)) throw new FsError("ENOTEMPTY", "the folder is not empty");
  // An arrival, which has no name here yet, is content too.
  const nodeId = context.nodeRows.ofFolder(inode.id)?.nodeId;
  if (nodeId != null && context.metadata.arrivals.isAnyIn(nodeId)) {
    throw new FsError("ENOTEMPTY", "the folder is not empty");
  }
}
