/** The attributes of an inode as a program sees them: with defaults, and with size and times of the cache file. */
import type { Attributes } from "../../contract/attributes.ts";
import type { Runtime } from "../../lib/runtime.ts";
import { formatTime, parseTime, type Time } from "../../lib/time.ts";
import type { Inode, InodeKind } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { type Attributed, type Found, FsError, type KernelNodeId, type Stat } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import { SHORT_MS } from "../host/index.ts";
import { realOwner } from "./owners.ts";

const FOLDER_SIZE = 4096;
const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

interface Stamps {
  readonly runtime: Pick<Runtime, "files">;
}

/** The time by the clock that stamps the cache files. With it, time stamps of the disk and of the rows are in order. */
export function now(context: Stamps): Time {
  return context.runtime.files.currentTime();
}

/** The time of `now`, as text that the rows store. */
export function fileTimeText(context: Stamps): string {
  return formatTime(now(context));
}

/** The size that programs see, in bytes: for a symlink that of its target, for a folder a constant. */
function shownSize(kind: InodeKind, attributes: Attributes, size: number): number {
  if (kind === "folder") return FOLDER_SIZE;
  if (kind === "symlink") return Buffer.byteLength(attributes.target ?? "");
  return size;
}

function defaultMode(kind: InodeKind, umask: number): number {
  if (kind === "symlink") return 0o777;
  return (kind === "folder" ? 0o755 : 0o644) & ~umask;
}

/**
 * The attributes of the inode. A superseded `kernelNodeId` shows the size of its own cache file. Rejects with the disk's
 * error.
 */
async function statOf(
  context: Rows & LocalFiles & Host,
  inode: Inode,
  kernelNodeId: KernelNodeId = inode.kernelNodeId,
): Promise<Stat> {
  const { attributes, kind } = inode;
  const { owners, owner } = context.settings;
  const { uid, gid } = owners === "mine" ? owner : await realOwner(context, attributes);
  let size = shownSize(kind, attributes, inode.size);
  let mtime = context.fileTimes.mtimeOf(inode);
  let ctime = parseTime(inode.ctime) ?? EPOCH;
  if (kind === "file") {
    if (kernelNodeId !== inode.kernelNodeId) {
      // Old handles and mappings stay on the old bytes, so they see the old size.
      size = context.metadata.cacheFiles.get(kernelNodeId)?.size ?? size;
    } else {
      const cacheFile = await context.cacheFiles.stat(inode);
      if (cacheFile !== undefined) ctime = context.fileTimes.ctimeOf(inode, mtime, cacheFile.mtime, now(context));
      if (cacheFile !== undefined) ({ size, mtime } = cacheFile);
    }
  }
  return {
    inode: inode.id,
    kind,
    mode: attributes.mode ?? defaultMode(kind, context.settings.umask),
    links: linksOf(context, inode),
    uid,
    gid,
    rdev: attributes.rdev ?? 0,
    size,
    blocks: kind === "folder" ? 8 : Math.ceil(size / 512),
    atime: parseTime(inode.atime) ?? EPOCH,
    mtime,
    ctime,
    btime: (attributes.btime === undefined ? undefined : parseTime(attributes.btime)) ?? ctime,
  };
}

/**
 * The link count. Of a folder: its own ".", its name, and the ".." of each folder in it. 1: the number of folders in it
 * is not known.
 */
function linksOf(context: Rows, inode: Inode): number {
  if (inode.kind !== "folder") return context.metadata.entries.links(inode.id);
  if (!isNamed(context, inode)) return 0;
  return inode.listed === null ? 1 : 2 + inode.folders;
}

/** The attributes for an answer that holds nothing else. The kernel takes over their values. */
export async function attributed(
  context: Rows & LocalFiles & Kernel & Host,
  inode: Inode,
  kernelNodeId = inode.kernelNodeId,
): Promise<Attributed> {
  const stat = await statOf(context, inode, kernelNodeId);
  const cacheFile = kernelNodeId === inode.kernelNodeId ? context.cacheFiles.get(kernelNodeId) : undefined;
  if (cacheFile !== undefined) cacheFile.shown(stat.size, stat.mtime);
  return { stat, validMs: attributesValidMs(context, inode) };
}

/**
 * In milliseconds. While the inode has writers, its attributes are valid for a short time only: writes through a
 * mapping or in passthrough are not reported.
 */
function attributesValidMs(context: LocalFiles & Kernel, inode: Inode): number {
  return context.cacheFiles.writersOf(inode) > 0 ? SHORT_MS : context.fresh.validMs();
}

/**
 * The attributes for an answer that finds the inode by a name. The kernel may ignore the attributes of such an answer
 * if it asked long ago, and it leaves out entries of a list that do not fit. So only a larger size counts as told to
 * the kernel, and the time that the kernel has counts as unknown.
 */
export async function found(context: Rows & LocalFiles & Kernel & Host, inode: Inode): Promise<Found> {
  const stat = await statOf(context, inode);
  const cacheFile = context.cacheFiles.get(inode.kernelNodeId);
  if (cacheFile !== undefined) cacheFile.mayBeShown(stat.size);
  context.orphans.lookedUp(inode);
  return {
    stat,
    kernelNodeId: inode.kernelNodeId,
    validMs: attributesValidMs(context, inode),
    entryValidMs: context.kernel.cache.expiresNames ? context.fresh.nameValidMs() : SHORT_MS,
  };
}

/** The inode of a kernel node id. Throws FsError ESTALE if the kernel node id is not known. */
export function inodeOf(context: Pick<Rows, "metadata">, kernelNodeId: KernelNodeId): Inode {
  const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
  if (inode === undefined) throw new FsError("ESTALE", `kernel node id ${kernelNodeId} is not known`);
  return inode;
}

/**
 * The folder of a kernel node id, whose names a program uses. Throws FsError ESTALE if it is not known, ENOTDIR if it
 * is no folder.
 */
export function folderOf(context: Pick<Rows, "metadata" | "folderUse">, kernelNodeId: KernelNodeId): Inode {
  const inode = inodeOf(context, kernelNodeId);
  if (inode.kind !== "folder") throw new FsError("ENOTDIR", `inode ${inode.id} is no folder`);
  context.folderUse.note(inode.id);
  return inode;
}

/** A folder whose own name was removed takes no new names. Throws FsError ENOENT then. */
export function requireNamed(context: Pick<Rows, "metadata">, folder: Inode): void {
  if (!isNamed(context, folder)) throw new FsError("ENOENT", `folder ${folder.id} was removed`);
}

function isNamed({ metadata }: Pick<Rows, "metadata">, folder: Inode): boolean {
  return folder.id === ROOT_INODE || metadata.entries.links(folder.id) > 0;
}

/**
 * Throws an FsError if nothing may be changed: EROFS if the mount is read-only or the token lacks the scope, otherwise
 * the error of the disk (host/disk.ts).
 */
export function requireWritable(context: Pick<LocalFiles & Remote, "readOnly" | "network" | "disk">): void {
  context.disk.requireChangeable();
  const { why } = context.readOnly;
  if (why !== undefined) throw new FsError("EROFS", `mounted read-only: ${why}`);
  if (!context.network.may("node.node.update")) throw new FsError("EROFS", "the token lacks node.node.update");
}
