/** rename(2): moves, replaces, exchanges. The change of the nodes is decided in tree/names.ts. */
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Caller, type EntryName, FsError, fromDisk } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import { checkName } from "./create.ts";
import { fetchWholeFile, whenWhole } from "./open.ts";
import { entryAt, requireDeletable, requireEmptyFolder, requireEntry, requireKnown } from "./remove.ts";
import { commitRequest } from "./request-log.ts";

export async function rename(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Incoming,
  caller: Caller,
  from: EntryName,
  to: EntryName,
  flags: { noReplace: boolean; exchange: boolean },
): Promise<void> {
  context.requirements.writable();
  checkName(to.name);
  await requireEntry(context, caller, from.parent, from.name);
  await requireTargetKnown(context, caller, to);
  const bring = async () => {
    if (!flags.noReplace) await bringReplacementWhole(context, caller, from, to, flags.exchange);
    if (!flags.exchange && !flags.noReplace) await makeReplacementSafe(context, from, to);
  };
  const renamed = await whenWhole(caller, from.name, bring, () => renameNow(context, caller, from, to, flags));
  for (const id of renamed) context.dirtyFiles.named(id);
  context.runtime.step("rename: done");
}

/**
 * Reads everything again and makes the change, in one transaction and without a wait. Returns the inodes whose names
 * changed. Undefined: a newer version came meanwhile, whose bytes have to be fetched first.
 */
function renameNow(
  context: Rows & Kernel & Remote & Host & Tree,
  caller: Caller,
  from: EntryName,
  to: EntryName,
  flags: { noReplace: boolean; exchange: boolean },
): InodeId[] | undefined {
  const change = (): InodeId[] | undefined => {
    const source = entryAt(context, from.parent, from.name);
    const targetFolder = context.requirements.folder(to.parent);
    context.requirements.named(targetFolder);
    const targetEntry = context.metadata.entries.find(targetFolder.id, to.name);
    if (targetEntry?.id === source.entry.id) return [];
    requireNotInside(context, source.inode, targetFolder);

    if (targetEntry === undefined) {
      if (flags.exchange) throw new FsError("ENOENT", `no ${JSON.stringify(to.name)} to exchange with`);
      context.names.move(source.entry, targetFolder.id, to.name);
      return [source.inode.id];
    }
    const target = entryAt(context, to.parent, to.name);
    if (flags.noReplace) throw new FsError("EEXIST", `${JSON.stringify(to.name)} is taken`);
    if (flags.exchange) {
      requireNotInside(context, target.inode, context.requirements.folder(from.parent));
      context.names.exchange(source.entry, target.entry);
      return [source.inode.id, target.inode.id];
    }
    // Both are names of one inode: by POSIX nothing happens.
    if (source.inode.id === target.inode.id) return [];
    if (source.inode.kind === "folder") {
      requireEmptyFolder(context, target.inode);
      requireDeletable(context, target.entry);
      context.names.remove(target.entry);
      context.names.move(source.entry, targetFolder.id, to.name);
      return [];
    }
    if (target.inode.kind === "folder") throw new FsError("EISDIR", "the target is a folder");
    requireDeletable(context, source.entry);
    if (!context.names.mayLeaveNode(source.inode.id)) return undefined;
    context.names.replaceTarget(source.entry, target.entry);
    return [source.inode.id, target.inode.id];
  };
  return commitRequest(context, caller, change, {
    about: (renamed) => (renamed === undefined ? undefined : "nothing"),
  });
}

async function requireTargetKnown(context: Rows & Tree & Incoming, caller: Caller, to: EntryName): Promise<void> {
  const folder = context.requirements.folder(to.parent);
  if (folder.listed === null && context.metadata.entries.find(folder.id, to.name) === undefined) {
    await context.folders.complete(folder.id, caller.signal);
  }
  const entry = context.metadata.entries.find(context.requirements.folder(to.parent).id, to.name);
  const inode = entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
  if (inode?.kind === "folder") await requireKnown(context, caller, inode);
}

/**
 * Content that goes to another node is sent to that node. Where the gateway shows only heads, missing bytes have to be
 * fetched before. They cannot be read any more once the head of the node that the content left is replaced, or that
 * node is deleted.
 */
async function bringReplacementWhole(
  context: Rows & LocalFiles & Remote & Tree,
  caller: Caller,
  from: EntryName,
  to: EntryName,
  isExchange: boolean,
): Promise<void> {
  const target = inodeAt(context, to);
  const source = inodeAt(context, from);
  if (target === undefined || source === undefined || target.id === source.id) return;
  for (const inode of isExchange ? [source, target] : [source]) {
    if (!context.names.mayLeaveNode(inode.id)) await fetchWholeFile(context, inode.kernelNodeId, caller.signal);
  }
}

function inodeAt(context: Rows & Tree, { parent, name }: EntryName): Inode | undefined {
  const entry = context.metadata.entries.find(context.requirements.folder(parent).id, name);
  return entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
}

/**
 * Makes the source durable if it would replace a target that a program has made durable (fsync). Otherwise the new name
 * could reach the disk before the new bytes, and power loss would leave neither the old nor the new content.
 */
async function makeReplacementSafe(context: Rows & LocalFiles & Tree, from: EntryName, to: EntryName): Promise<void> {
  const source = entryAt(context, from.parent, from.name).inode;
  const target = inodeAt(context, to);
  if (target === undefined || target.id === source.id || target.synced === "never") return;
  if (source.kind !== "file" || source.content !== "dirty" || source.synced === "durable") return;
  const cacheFile = await context.cacheFiles.open(source.kernelNodeId, { write: false });
  try {
    await cacheFile.makeDurable();
  } catch (error) {
    throw fromDisk(error, "the local disk failed");
  } finally {
    await cacheFile.close({ write: false });
  }
}

/** Throws EINVAL: a folder cannot move into itself. */
function requireNotInside(context: Tree, moved: Inode, folder: Inode): void {
  if (moved.kind !== "folder") return;
  if (context.nodeRows.isInside(folder.id, moved.id)) throw new FsError("EINVAL", "a folder cannot move into itself");
}
