/** What a program sees of an inode: attributes with their defaults, and the live file's truth laid over them. */
import type { Attributes } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";
import type { Runtime } from "../../lib/runtime.ts";
import { formatTime, parseTime, type Time, timeFromMilliseconds } from "../../lib/time.ts";
import type { Inode, InodeKind } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import { type Attributed, type Found, FsError, type KernelNodeId, type Stat } from "../api/index.ts";
import { type Host, isLongerThanShown, type Kernel, type LocalFiles, type Remote, type Rows } from "../core/index.ts";
import { cacheFileStat, ctimeOf, mtimeOf, onLookup, shown, writersOf } from "../files/index.ts";
import { LIVE_MS, LIVE_NAME_MS, SHORT_MS } from "../host/index.ts";
import { realOwner } from "./owners.ts";

/** SHA-256 of nothing. */
export const EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const FOLDER_SIZE = 4096;
const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

export function kindOf(node: Node): InodeKind {
  return node.kind === "folder" ? "folder" : (node.attributes.type ?? "file");
}

interface Stamps {
  readonly runtime: Pick<Runtime, "files">;
}

/** By the clock of the live files: what the disk stamps and what the rows are stamped with is in order. */
export function now(context: Stamps): Time {
  return context.runtime.files.currentTime();
}

export function fileTimeText(context: Stamps): string {
  return formatTime(now(context));
}

export function isoToTimeText(iso: string): string {
  return formatTime(timeFromMilliseconds(Date.parse(iso)));
}

/** In bytes, of what is shown: a symlink's target, a folder's constant. */
export function shownSize(kind: InodeKind, attributes: Attributes, size: number): number {
  if (kind === "folder") return FOLDER_SIZE;
  if (kind === "symlink") return Buffer.byteLength(attributes.target ?? "");
  return size;
}

function defaultMode(kind: InodeKind, umask: number): number {
  if (kind === "symlink") return 0o777;
  return (kind === "folder" ? 0o755 : 0o644) & ~umask;
}

export async function statOf(
  context: Rows & LocalFiles & Host,
  inode: Inode,
  lineage: KernelNodeId = inode.lineage,
): Promise<Stat> {
  const { attributes, kind } = inode;
  const { owners, owner } = context.settings;
  const { uid, gid } = owners === "mine" ? owner : await realOwner(context, attributes);
  let size = shownSize(kind, attributes, inode.size);
  let mtime = mtimeOf(context, inode);
  let ctime = parseTime(inode.ctime) ?? EPOCH;
  if (kind === "file") {
    if (lineage !== inode.lineage) {
      // Old handles and mappings stay on the old bytes, so they see the old size.
      size = context.metadata.cacheFiles.get(lineage)?.size ?? size;
    } else {
      const cacheFile = await cacheFileStat(context, inode);
      if (cacheFile !== undefined) ctime = ctimeOf(inode, mtime, cacheFile.mtime, now(context));
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

/** Of a folder its own, its name and the ".." of each folder in it. 1: how many there are is not known. */
function linksOf(context: Rows, inode: Inode): number {
  if (inode.kind !== "folder") return context.metadata.entries.links(inode.id);
  if (!isNamed(context, inode)) return 0;
  return inode.listed === null ? 1 : 2 + inode.folders;
}

/** For an answer that is about nothing else: the kernel takes what it says. */
export async function attributed(
  context: Rows & LocalFiles & Kernel & Host,
  inode: Inode,
  lineage = inode.lineage,
): Promise<Attributed> {
  const stat = await statOf(context, inode, lineage);
  const cacheFile = lineage === inode.lineage ? context.cacheFiles.get(lineage) : undefined;
  if (cacheFile !== undefined) shown(cacheFile, stat.size, stat.mtime);
  return { stat, validMs: attributesValidMs(context, inode) };
}

/** What a program writes through a mapping, or where the kernel writes by itself, nobody is told of. */
function attributesValidMs(context: LocalFiles & Kernel, inode: Inode): number {
  return writersOf(context, inode) > 0 ? SHORT_MS : validMs(context);
}

/** How long the kernel may keep what it is told now. */
export function validMs({ fresh }: Pick<Kernel, "fresh">): number {
  return fresh.isLive() ? LIVE_MS : SHORT_MS;
}

/**
 * For an answer that finds it by a name: the kernel may pass over its attributes, should it have asked long ago, and of
 * a list what does not fit is left out.
 */
export async function found(context: Rows & LocalFiles & Kernel & Host, inode: Inode): Promise<Found> {
  const stat = await statOf(context, inode);
  const cacheFile = context.cacheFiles.get(inode.lineage);
  if (cacheFile !== undefined) {
    if (isLongerThanShown(stat.size, cacheFile.changes.shownSize)) cacheFile.changes.shownSize = stat.size;
    cacheFile.changes.shownTime = undefined;
  }
  onLookup(context, inode);
  return {
    stat,
    lineage: inode.lineage,
    validMs: attributesValidMs(context, inode),
    entryValidMs: context.kernel.cache.expiresNames ? Math.min(validMs(context), LIVE_NAME_MS) : SHORT_MS,
  };
}

/** The inode behind what the kernel calls a node id. */
export function inodeOf(context: Pick<Rows, "metadata">, lineage: KernelNodeId): Inode {
  const inode = context.metadata.inodes.ofKernelNodeId(lineage);
  if (inode === undefined) throw new FsError("ESTALE", `lineage ${lineage} is not known`);
  return inode;
}

export function folderOf(context: Pick<Rows, "metadata">, lineage: KernelNodeId): Inode {
  const inode = inodeOf(context, lineage);
  if (inode.kind !== "folder") throw new FsError("ENOTDIR", `inode ${inode.id} is no folder`);
  return inode;
}

/** A folder whose own name was removed takes no new names. */
export function requireNamed(context: Pick<Rows, "metadata">, folder: Inode): void {
  if (!isNamed(context, folder)) throw new FsError("ENOENT", `folder ${folder.id} was removed`);
}

function isNamed({ metadata }: Pick<Rows, "metadata">, folder: Inode): boolean {
  return folder.id === ROOT_INODE || metadata.entries.links(folder.id) > 0;
}

export function requireWritable(context: Pick<LocalFiles & Remote, "readOnly" | "network" | "disk">): void {
  context.disk.requireChangeable();
  const { why } = context.readOnly;
  if (why !== undefined) throw new FsError("EROFS", `mounted read-only: ${why}`);
  if (!context.network.may("node.node.update")) throw new FsError("EROFS", "the token lacks node.node.update");
}
