/** New names: files, folders, links and special files. */
import { type Attributes, sameAttributes } from "../../contract/attributes.ts";
import { nameProblem } from "../../contract/names.ts";
import { EMPTY_HASH } from "../../lib/empty-hash.ts";
import { handedDown } from "../../lib/set-id-bits.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { Inode, InodeKind, NewInode } from "../../metadata/inodes.ts";
import {
  type Caller,
  type FileKind,
  type Found,
  FsError,
  fromDisk,
  type KernelNodeId,
  type Opened,
  type OpenFlags,
} from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { isPassthroughAtOnce, open, openCreated, prepareOpen, release } from "./open.ts";
import type { Prefetch } from "./prefetch.ts";
import { commitRequest } from "./request-log.ts";

const TARGET_BYTES_MAX = 4095;
const LINKS_MAX = 65_000;

/**
 * Lists the folder completely, so that the caller can find out here whether the name is free. Returns the folder as it
 * is afterwards. The caller must look for the name before its next await. Rejects with EROFS, ENOSPC, EDQUOT, EINVAL,
 * ENAMETOOLONG, ESTALE, ENOTDIR, with ENOENT when the folder was removed, or as the listing does. `linked`: the file
 * that gets a second name.
 */
async function requireFreeName(
  context: Rows & LocalFiles & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
  linked?: KernelNodeId,
): Promise<Inode> {
  context.requirements.writable();
  if (context.space.isTight()) {
    const size = () => (linked === undefined ? 0 : context.requirements.inode(linked).size);
    await context.space.require(0, { most: size(), exactly: async () => size() });
  }
  checkName(name);
  const known = context.requirements.folder(parent);
  context.requirements.named(known);
  if (known.listed === null && context.metadata.entries.find(known.id, name) === undefined) {
    await context.folders.complete(known.id, caller.signal);
  }
  const folder = context.requirements.folder(parent);
  context.requirements.named(folder);
  return folder;
}

/** Throws EINVAL or ENAMETOOLONG when the gateway cannot hold the name. */
export function checkName(name: string): void {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  throw new FsError(Buffer.byteLength(name) > 255 ? "ENAMETOOLONG" : "EINVAL", `the name ${problem}`);
}

function makeInode(context: Rows & Tree, kind: InodeKind, attributes: Attributes, content: NewContent): Inode {
  const time = context.stats.nowText();
  return context.metadata.inodes.create({
    kind,
    attributes: { ...attributes, mtime: time, btime: time },
    size: 0,
    originNode: null,
    originVersion: null,
    atime: time,
    ctime: time,
    ...content,
  });
}

type NewContent = Pick<NewInode, "content" | "hash" | "changes" | "listed">;

/** A folder that the gateway does not know yet has no other names than those made here, so it counts as listed. */
const EMPTY_FOLDER: NewContent = { content: "clean", hash: null, listed: 0 };
const EMPTY: NewContent = { content: "dirty", hash: EMPTY_HASH };
/** A passthrough writer may write at any moment, so the rows say that the content has changed. */
const WRITTEN: NewContent = { content: "dirty", hash: null, changes: 1 };

async function make(
  context: Rows & LocalFiles & Kernel & Host & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
  kind: InodeKind,
  attributes: Attributes,
): Promise<Inode> {
  const maker = await context.owners.maker(caller);
  const folder = await requireFreeName(context, caller, parent, name);
  const isFolder = kind === "folder";
  const makeIt = () => {
    if (context.metadata.entries.find(folder.id, name) !== undefined) {
      throw new FsError("EEXIST", `${JSON.stringify(name)} is taken`);
    }
    const mode = isFolder ? { mode: handedDown(folder.attributes.mode, attributes.mode) } : {};
    const owned = context.owners.madeBy(maker, folder, { ...attributes, ...mode });
    const inode = makeInode(context, kind, owned, isFolder ? EMPTY_FOLDER : EMPTY);
    context.names.add(folder.id, name, inode.id, isFolder ? "folder" : "file");
    return inode;
  };
  const made = commitRequest(context, caller, makeIt, { about: ({ kernelNodeId }) => kernelNodeId });
  context.runtime.step("make: named");
  return made;
}

export async function create(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Incoming & Outgoing & Prefetch,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
  mode: number,
  flags: OpenFlags,
): Promise<Found & Opened> {
  const maker = await context.owners.maker(caller);
  const folder = await requireFreeName(context, caller, parent, name);
  const existing = context.metadata.entries.find(folder.id, name);
  if (existing !== undefined) {
    // Another program or the gateway made the name first.
    if (flags.exclusive) throw new FsError("EEXIST", `${JSON.stringify(name)} is taken`);
    const inode = context.metadata.inodes.get(existing.inode);
    if (inode === undefined) throw new FsError("EIO", `entry ${existing.id} without inode`);
    return shown(context, inode.kernelNodeId, await open(context, caller, inode.kernelNodeId, flags));
  }
  const makeIt = () => {
    const content = isPassthroughAtOnce(context, flags) ? WRITTEN : EMPTY;
    const inode = makeInode(context, "file", context.owners.madeBy(maker, folder, { mode }), content);
    const entry = context.names.add(folder.id, name, inode.id, "file");
    return { inode, entry, hasRow: prepareOpen(context, inode, flags) };
  };
  const made = commitRequest(context, caller, makeIt, { about: ({ inode }) => inode.kernelNodeId });
  context.runtime.step("create: named");
  const { kernelNodeId } = made.inode;
  return context.fileState.whileUnknownToKernel(kernelNodeId, async () => {
    try {
      return await shown(context, kernelNodeId, await openCreated(context, caller, made, flags));
    } catch (error) {
      unmake(context, caller, made);
      throw error;
    }
  });
}

/** For a resent request: the daemon that made the file died before it opened the file. Rejects as `open` does. */
export async function openMade(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Outgoing & Prefetch,
  caller: Caller,
  inode: Inode,
  flags: OpenFlags,
): Promise<Found & Opened> {
  const [entry] = context.metadata.entries.ofInode(inode.id);
  try {
    return await shown(context, inode.kernelNodeId, await open(context, caller, inode.kernelNodeId, flags));
  } catch (error) {
    // Equal times: nothing was done with the file since it was made, not even a rename.
    if (entry !== undefined && inode.ctime === inode.attributes.btime) unmake(context, caller, { inode, entry });
    throw error;
  }
}

/** The complete answer. If it fails, the handle is released, because the kernel would never close it. */
async function shown(
  context: LocalFiles & Kernel & Host & Tree,
  kernelNodeId: KernelNodeId,
  opened: Opened,
): Promise<Found & Opened> {
  try {
    return { ...(await context.stats.found(context.requirements.inode(kernelNodeId))), ...opened };
  } catch (error) {
    await release(context, opened.handle);
    throw fromDisk(error, `kernel node id ${kernelNodeId} cannot be looked at`);
  }
}

/**
 * Removes the name of a new file that could not be opened, for instance because the disk had no room for the cache
 * file. If anything was done with the file since, it stays. The request is removed from the request log too: resent to
 * a daemon that takes over, it makes the file again. If the request had passed its deadline, a program may have found
 * the file meanwhile: for that program it is a removed file.
 */
function unmake(
  context: Rows & LocalFiles & Tree,
  { mark }: Caller,
  made: { readonly inode: Inode; readonly entry: Entry },
): void {
  const { metadata, fileState } = context;
  const { id } = made.inode;
  metadata.transaction(() => {
    const inode = metadata.inodes.get(id);
    const [entry, ...others] = metadata.entries.ofInode(id);
    if (inode === undefined || entry === undefined || others.length > 0 || inode.size > 0) return;
    if (context.cacheFiles.has(inode.kernelNodeId)) return;
    metadata.writers.end(id);
    // If the file was renamed meanwhile, it may have replaced another file, and nothing else is left of that.
    if (entry.parent !== made.entry.parent || entry.name !== made.entry.name) return;
    if (!sameAttributes(inode.attributes, made.inode.attributes)) return;
    context.names.remove(entry);
    if (fileState.isUnknownToKernel(inode.kernelNodeId)) context.orphans.dropIfUnused(inode.kernelNodeId);
    if (mark !== undefined) metadata.done.undone(mark.id);
  });
}

/** Throws EPERM when the gateway holds no attributes, which say that a node is something else than a file or folder. */
function requireAttributes({ client }: Remote, what: string): void {
  if (!client.features.attributes) throw new FsError("EPERM", `the gateway holds no ${what}`);
}

export async function mkdir(
  context: Rows & LocalFiles & Kernel & Host & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
  mode: number,
): Promise<Found> {
  return context.stats.found(await make(context, caller, parent, name, "folder", { mode }));
}

export async function mknod(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
  kind: FileKind,
  mode: number,
  rdev: number,
): Promise<Found> {
  if (kind === "folder" || kind === "symlink") throw new FsError("EINVAL", `mknod makes no ${kind}`);
  if (kind === "file") return context.stats.found(await make(context, caller, parent, name, kind, { mode }));
  requireAttributes(context, "special files");
  const device = kind === "block" || kind === "character" ? { rdev } : {};
  return context.stats.found(await make(context, caller, parent, name, kind, { mode, type: kind, ...device }));
}

export async function symlink(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Incoming,
  caller: Caller,
  parent: KernelNodeId,
  name: string,
  target: string,
): Promise<Found> {
  if (target === "") throw new FsError("ENOENT", "an empty target");
  requireAttributes(context, "links");
  if (Buffer.byteLength(target) > TARGET_BYTES_MAX) throw new FsError("ENAMETOOLONG", "the target is too long");
  return context.stats.found(await make(context, caller, parent, name, "symlink", { type: "symlink", target }));
}

export async function readlink(context: Tree, kernelNodeId: KernelNodeId): Promise<string> {
  const inode = context.requirements.inode(kernelNodeId);
  if (inode.kind !== "symlink") throw new FsError("EINVAL", `inode ${inode.id} is no symlink`);
  return inode.attributes.target ?? "";
}

/**
 * Makes a second name of a file. Each name is a node of its own at the gateway, and the link group says which belong
 * together.
 */
export async function link(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Incoming,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  parent: KernelNodeId,
  name: string,
): Promise<Found> {
  requireAttributes(context, "links");
  const { metadata, client } = context;
  // The hash of a name's content tells whether the name still belongs to its file.
  if (!client.features.hashes) throw new FsError("EPERM", "the gateway tells no hashes, so holds no links");
  // Content that arrives by one name is shown by all names. Where the gateway keeps no versions, all names would lose
  // missing bytes of it once the head of that one name is replaced.
  if (!client.features.isFull) throw new FsError("EPERM", "the gateway shows only heads, so holds no links");
  await requireFreeName(context, caller, parent, name, kernelNodeId);
  const linkIt = () => {
    const source = context.requirements.inode(kernelNodeId);
    const folder = context.requirements.folder(parent);
    context.requirements.named(folder);
    if (source.kind === "folder") throw new FsError("EPERM", "no second name for a folder");
    const names = metadata.entries.links(source.id);
    if (names === 0) throw new FsError("ENOENT", "the file was removed");
    if (names >= LINKS_MAX) throw new FsError("EMLINK", `more than ${LINKS_MAX} names`);
    if (metadata.entries.find(folder.id, name) !== undefined) {
      throw new FsError("EEXIST", `${JSON.stringify(name)} is taken`);
    }
    const linkGroup = source.linkGroup ?? context.runtime.uuid();
    context.fileTimes.pinMtime(source.id);
    const linked = metadata.inodes.update(source.id, { linkGroup, ctime: context.stats.nowText() });
    context.names.add(folder.id, name, source.id, "file");
    // With the first link, the earlier name gets the link group too and is set dirty. Later links set only the new name
    // dirty: to set thousands of names dirty for one more would take ever longer.
    if (source.linkGroup === null) context.queue.setInodeDirty(source.id);
    return linked;
  };
  const inode = commitRequest(context, caller, linkIt, { about: () => kernelNodeId, by: kernelNodeId });
  context.runtime.step("link: named");
  return context.stats.found(inode);
}
