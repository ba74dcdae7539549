/** Attributes that programs set: setattr, and extended attributes. */
import { ATTRIBUTES_BYTES_MAX, type Attributes, outgrow } from "../../contract/attributes.ts";
import { withoutPrivileges } from "../../lib/set-id-bits.ts";
import { clampTime, formatTime, type Time } from "../../lib/time.ts";
import { VALUE_BYTES_MAX } from "../../metadata/attribute-limits.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { type Attributed, type Caller, FsError, type KernelNodeId, type SetAttributes } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Account, Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { commitRequest } from "./request-log.ts";
import { truncate } from "./write.ts";

export async function setattr(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Outgoing,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  change: SetAttributes,
): Promise<Attributed> {
  context.requirements.writable();
  if (change.size === undefined) return setRest(context, caller, kernelNodeId, change);
  await truncate(context, caller, kernelNodeId, change.size, change.handle);
  try {
    return await setRest(context, caller, kernelNodeId, change);
  } catch (error) {
    // The kernel gets an error, so it does not know the new size of the file.
    context.kernel.expireAll();
    throw error;
  }
}

/** Sets everything but the size. */
async function setRest(
  context: Rows & LocalFiles & Kernel & Host & Tree,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  change: SetAttributes,
): Promise<Attributed> {
  const user = change.uid === undefined ? undefined : await context.owners.account("user", change.uid);
  const group = change.gid === undefined ? undefined : await context.owners.account("group", change.gid);
  const inode = context.requirements.inode(kernelNodeId);
  const time = context.stats.now();
  const mtime = resolve(change.mtime, time);
  // While the cache file is open for writing, its own mtime counts, so that changes first.
  if (mtime !== undefined && inode.kind === "file") await context.cacheFiles.setTimes(inode, mtime);
  const set = () => {
    const current = context.requirements.inode(kernelNodeId);
    const attributes = changedAttributes(context, current, { ...change, user, group }, mtime);
    const atime = resolve(change.atime, time);
    const isChanged = attributes !== current.attributes;
    if (!isChanged && atime === undefined) return;
    context.metadata.inodes.update(current.id, {
      attributes,
      ctime: formatTime(time),
      ...(atime === undefined ? {} : { atime: formatTime(atime) }),
    });
    if (isChanged) context.queue.setInodeDirty(current.id);
  };
  // A request without a size names all values that it sets. If it is carried out again before its program goes on, the
  // result is the same, so it needs no entry in the request log. With a size the result may differ: the truncated file
  // may have been replaced by another one meanwhile.
  if (isOfOpen(change)) context.metadata.changed.ours(() => context.metadata.transaction(set));
  else if (change.size === undefined) context.kernel.byRequest(set, kernelNodeId);
  else commitRequest(context, caller, set, { about: () => kernelNodeId, by: kernelNodeId });
  const cacheFile = context.cacheFiles.get(kernelNodeId);
  // The file may have set-id bits now, which the next write must remove.
  if (cacheFile !== undefined) cacheFile.revokeWriteLeases();
  context.runtime.step("setattr: set");
  return context.stats.attributed(context.requirements.inode(kernelNodeId), kernelNodeId);
}

/**
 * True: the kernel sends this change for an open with O_TRUNC, which removes set-id bits. The answer to an open shows
 * no mode, so the kernel has to be told.
 */
function isOfOpen({ killPrivileges, size, uid, gid }: SetAttributes): boolean {
  return killPrivileges === true && size === undefined && uid === undefined && gid === undefined;
}

function resolve(time: Time | "now" | undefined, present: Time): Time | undefined {
  if (time === undefined) return undefined;
  return time === "now" ? present : clampTime(time);
}

/** Returns the same object when no attribute changes that the gateway holds. */
function changedAttributes(
  context: Tree,
  inode: Inode,
  change: SetAttributes & { readonly user: Account | undefined; readonly group: Account | undefined },
  mtime: Time | undefined,
): Attributes {
  const { user, group } = change;
  let { attributes } = inode;
  if (user !== undefined) attributes = context.owners.chowned(attributes, "user", user);
  if (group !== undefined) attributes = context.owners.chowned(attributes, "group", group);
  const patch: Attributes = {};
  if (change.mode !== undefined) patch.mode = change.mode & 0o7777;
  const isChown = user !== undefined || group !== undefined;
  const mayDrop = change.killPrivileges === true || (isChown && change.mode === undefined);
  // The set-id bits of a folder mean something else, and stay.
  if (mayDrop && inode.kind !== "folder") {
    const mode = withoutPrivileges(inode.attributes.mode);
    if (mode !== undefined) patch.mode = mode;
  }
  if (mtime !== undefined) patch.mtime = formatTime(mtime);
  return Object.keys(patch).length === 0 ? attributes : { ...attributes, ...patch };
}

const PREFIX = "user.";
/** Attributes in this space describe a node here. They are never sent. */
const RESERVED = "user.wsfs.";
/** The kernel's limit of a name. */
const NAME_BYTES_MAX = 255;

function isKept(name: string): boolean {
  return name.startsWith(PREFIX) && name.length > PREFIX.length;
}

function checkXattrName(name: string): void {
  if (isKept(name)) return;
  if (name === PREFIX) throw new FsError("EINVAL", `${PREFIX} is a space, and no name in it`);
  throw new FsError("EOPNOTSUPP", `only attributes of the ${PREFIX} space are kept`);
}

export async function setxattr(
  context: Rows & Kernel & Host & Tree,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  name: string,
  value: Uint8Array,
  flags: { create: boolean; replace: boolean },
): Promise<void> {
  context.requirements.writable();
  checkXattrName(name);
  if (name.startsWith(RESERVED)) throw new FsError("EPERM", `${RESERVED}* is read-only`);
  if (value.length > VALUE_BYTES_MAX) throw new FsError("ERANGE", `more than ${VALUE_BYTES_MAX} bytes`);
  changeXattrs(context, caller, kernelNodeId, (xattrs) => {
    if (flags.create && name in xattrs) throw new FsError("EEXIST", `${name} is set`);
    if (flags.replace && !(name in xattrs)) throw new FsError("ENODATA", `no ${name}`);
    return { ...xattrs, [name]: Buffer.from(value).toString("base64") };
  });
}

export async function removexattr(
  context: Rows & Kernel & Host & Tree,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  name: string,
): Promise<void> {
  context.requirements.writable();
  checkXattrName(name);
  changeXattrs(context, caller, kernelNodeId, (xattrs) => {
    if (!(name in xattrs)) throw new FsError("ENODATA", `no ${name}`);
    const { [name]: _, ...rest } = xattrs;
    return rest;
  });
}

function changeXattrs(
  context: Rows & Kernel & Host & Tree,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  change: (xattrs: Record<string, string>) => Record<string, string>,
): void {
  const set = () => {
    const inode = context.requirements.inode(kernelNodeId);
    const { xattrs: current = {}, ...others } = inode.attributes;
    const xattrs = change(current);
    const attributes = Object.keys(xattrs).length === 0 ? others : { ...others, xattrs };
    // Otherwise the gateway would refuse this and every other change of the node.
    const bytes = outgrow(inode.attributes, attributes);
    if (bytes !== undefined) throw new FsError("ENOSPC", `${bytes} bytes, more than ${ATTRIBUTES_BYTES_MAX}`);
    context.metadata.inodes.update(inode.id, { attributes, ctime: context.stats.nowText() });
    context.queue.setInodeDirty(inode.id);
  };
  commitRequest(context, caller, set, { by: kernelNodeId });
  context.runtime.step("xattr: set");
}

export async function getxattr(context: Tree, kernelNodeId: KernelNodeId, name: string): Promise<Uint8Array> {
  checkXattrName(name);
  const value = context.requirements.inode(kernelNodeId).attributes.xattrs?.[name];
  if (value === undefined) throw new FsError("ENODATA", `no ${name}`);
  return Buffer.from(value, "base64");
}

/**
 * The names that a program can ask for. The gateway may hold other names too. They stay there and are not shown,
 * because programs would fail over them.
 */
export async function listxattr(context: Tree, kernelNodeId: KernelNodeId): Promise<string[]> {
  return Object.keys(context.requirements.inode(kernelNodeId).attributes.xattrs ?? {}).filter(canBeAskedFor);
}

function canBeAskedFor(name: string): boolean {
  return isKept(name) && !name.includes("\0") && Buffer.byteLength(name) <= NAME_BYTES_MAX;
}
