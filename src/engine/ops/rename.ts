/** rename(2): moving, replacing, exchanging. What happens to the nodes is decided in identity.ts. */
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Caller, FsError, fromDisk, type KernelNodeId } from "../api/index.ts";
import type { Context, Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import { closeCacheFile, logNames, makeDurable, openCacheFile } from "../files/index.ts";
import { completeFolder } from "../remote/index.ts";
import {
  exchangeNames,
  folderOf,
  isInside,
  mayLeaveNode,
  moveName,
  removeName,
  replaceTarget,
  requireNamed,
  requireWritable,
} from "../tree/index.ts";
import { checkName } from "./create.ts";
import { fetchWholeFile, whenWhole } from "./open.ts";
import { entryAt, requireDeletable, requireEmptyFolder, requireEntry, requireKnown } from "./remove.ts";
import { commitRequest } from "./request-log.ts";

export interface Place {
  readonly parent: KernelNodeId;
  readonly name: string;
}

export async function rename(
  context: Context,
  caller: Caller,
  from: Place,
  to: Place,
  flags: { noReplace: boolean; exchange: boolean },
): Promise<void> {
  requireWritable(context);
  checkName(to.name);
  await requireEntry(context, caller, from.parent, from.name);
  await requireTargetKnown(context, caller, to);
  const bring = async () => {
    if (!flags.noReplace) await bringReplacementWhole(context, caller, from, to, flags.exchange);
    if (!flags.exchange && !flags.noReplace) await makeReplacementSafe(context, from, to);
  };
  const renamed = await whenWhole(caller, from.name, bring, () => renameNow(context, caller, from, to, flags));
  for (const id of renamed) logNames(context, id);
  context.runtime.step("rename: done");
}

/**
 * Nothing waits here: what was known is read again and changed in one transaction. The inodes whose names
 * changed; undefined: there is a newer version since, whose bytes have to come first.
 */
function renameNow(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  caller: Caller,
  from: Place,
  to: Place,
  flags: { noReplace: boolean; exchange: boolean },
): InodeId[] | undefined {
  const change = (): InodeId[] | undefined => {
    const source = entryAt(context, from.parent, from.name);
    const targetFolder = folderOf(context, to.parent);
    requireNamed(context, targetFolder);
    const targetEntry = context.metadata.entries.find(targetFolder.id, to.name);
    if (targetEntry?.id === source.entry.id) return [];
    requireNotInside(context, source.inode, targetFolder);

    if (targetEntry === undefined) {
      if (flags.exchange) throw new FsError("ENOENT", `no ${JSON.stringify(to.name)} to exchange with`);
      moveName(context, source.entry, targetFolder.id, to.name);
      return [source.inode.id];
    }
    const target = entryAt(context, to.parent, to.name);
    if (flags.noReplace) throw new FsError("EEXIST", `${JSON.stringify(to.name)} is taken`);
    if (flags.exchange) {
      requireNotInside(context, target.inode, folderOf(context, from.parent));
      exchangeNames(context, source.entry, target.entry);
      return [source.inode.id, target.inode.id];
    }
    // Two names of one inode: POSIX says nothing happens.
    if (source.inode.id === target.inode.id) return [];
    if (source.inode.kind === "folder") {
      requireEmptyFolder(context, target.inode);
      requireDeletable(context, target.entry);
      removeName(context, target.entry);
      moveName(context, source.entry, targetFolder.id, to.name);
      return [];
    }
    if (target.inode.kind === "folder") throw new FsError("EISDIR", "the target is a folder");
    requireDeletable(context, source.entry);
    if (!mayLeaveNode(context, source.inode.id)) return undefined;
    replaceTarget(context, source.entry, target.entry);
    return [source.inode.id, target.inode.id];
  };
  return commitRequest(context, caller, change, {
    about: (renamed) => (renamed === undefined ? undefined : "nothing"),
  });
}

async function requireTargetKnown(context: Context, caller: Caller, to: Place): Promise<void> {
  const folder = folderOf(context, to.parent);
  if (folder.listed === null && context.metadata.entries.find(folder.id, to.name) === undefined) {
    await completeFolder(context, folder.id, caller.signal);
  }
  const entry = context.metadata.entries.find(folderOf(context, to.parent).id, to.name);
  const inode = entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
  if (inode?.kind === "folder") await requireKnown(context, caller, inode);
}

/**
 * Content that gets another node is sent to it: bytes that are not here have to come first where the
 * gateway shows only heads. Once somebody has replaced that head, or the node it has left is deleted,
 * nobody could read them.
 */
async function bringReplacementWhole(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  caller: Caller,
  from: Place,
  to: Place,
  isExchange: boolean,
): Promise<void> {
  const target = inodeAt(context, to);
  const source = inodeAt(context, from);
  if (target === undefined || source === undefined || target.id === source.id) return;
  for (const inode of isExchange ? [source, target] : [source]) {
    if (!mayLeaveNode(context, inode.id)) await fetchWholeFile(context, inode.lineage, caller.signal);
  }
}

function inodeAt(context: Rows, { parent, name }: Place): Inode | undefined {
  const entry = context.metadata.entries.find(folderOf(context, parent).id, name);
  return entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
}

/**
 * A program was told that the target survives power loss, and the gateway does not have it yet. With
 * the new name on the disk before the new bytes, neither the one nor the other would be there.
 */
async function makeReplacementSafe(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  from: Place,
  to: Place,
): Promise<void> {
  const source = entryAt(context, from.parent, from.name).inode;
  const target = inodeAt(context, to);
  if (target === undefined || target.id === source.id || target.synced === null) return;
  if (source.kind !== "file" || source.content !== "dirty" || source.synced === 1) return;
  const cacheFile = await openCacheFile(context, source.lineage, { write: false });
  try {
    await makeDurable(context, cacheFile);
  } catch (error) {
    throw fromDisk(error, "the local disk failed");
  } finally {
    await closeCacheFile(context, cacheFile, { write: false });
  }
}

/** A folder cannot move into itself. */
function requireNotInside(context: Rows, moved: Inode, folder: Inode): void {
  if (moved.kind !== "folder") return;
  if (isInside(context, folder.id, moved.id)) throw new FsError("EINVAL", "a folder cannot move into itself");
}
