/**
 * Power loss: the machine went down while the mount was there. Rows and files are as old as their last syncs, which
 * differ. Clean bytes are checked before they are used (files/open-close.ts). Content of a file that no program ever
 * synced does not replace a head: it goes on beside the head under a name of its own. A file that a program synced once
 * and wrote to since stays in its place, because it may belong with others (a database and its journal). It is
 * quarantined: it replaces a head only when a person says so, or when it is saved again.
 */
import { savesOfLink } from "../../contract/saves.ts";
import { hasCode } from "../../lib/system-error.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { keepCopy } from "./conflict-copy.ts";

/** True: the machine went down while the mount was there, so changes that were not synced may be lost. */
export function wentDown(context: Rows & Host): boolean {
  const boot = context.metadata.settings.get("boot");
  return boot !== undefined && boot !== context.settings.boot;
}

/** Decides about all contents after power loss. Call it before any other flow. Rejects with the error of the disk. */
export async function judgeContents(context: Rows & LocalFiles & Host & Tree): Promise<void> {
  const { metadata, log } = context;
  log.info({}, "the machine went down while the mount was there: contents that were not synced are checked");
  metadata.cacheFiles.markAllForCheck();
  for (const inode of metadata.inodes.unclean()) {
    // A writer had the file open, and no program was told that a change of it is durable.
    if (inode.content === "open") metadata.inodes.update(inode.id, { content: "clean" });
    else if (inode.synced !== "durable" && !(await isAsSnapshot(context, inode))) await judge(context, inode);
  }
}

/**
 * True: the file on the disk still has the bytes of its snapshot. The row does not call the content durable if that
 * snapshot was taken while a passthrough writer had the file open.
 */
async function isAsSnapshot(context: LocalFiles, inode: Inode): Promise<boolean> {
  if (inode.hash === null) return false;
  try {
    return await context.cacheFiles.isStill(inode, inode.hash);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Parks a row whose content is quarantined: it waits until a person saves it again, or says that it is to be sent. */
export function parkQuarantined({ metadata, activity }: Rows & Uploads, row: NodeRowId): void {
  if (metadata.nodes.get(row)?.dirtySince == null) return;
  metadata.nodes.update(row, { parked: QUARANTINE_REASON, due: null });
  activity.progressed();
}

/** Decides about dirty content that may be half-written. */
async function judge(context: Rows & LocalFiles & Host & Tree, inode: Inode): Promise<void> {
  const { metadata, log } = context;
  const size = await sizeOfCopy(context, inode);
  metadata.transaction(() => {
    // A snapshot that is the cache file itself may not have the hashed bytes any more.
    for (const snapshot of metadata.snapshots.ofKernelNodeId(inode.kernelNodeId)) {
      for (const { id } of metadata.attempts.ofSnapshot(snapshot.id)) {
        metadata.attempts.abandon(id, context.runtime.now());
      }
      context.snapshotFiles.remove(snapshot);
    }
    metadata.inodes.update(inode.id, { hash: null, changes: inode.changes + 1 });
    const names = metadata.entries.ofInode(inode.id);
    const [entry] = names;
    const row = entry === undefined ? undefined : metadata.nodes.ofEntry(entry.id);
    const isBorn = names.some(({ id }) => metadata.nodes.ofEntry(id)?.base?.head != null);
    if (isBorn && !inode.isFsynced && names.length === 1 && entry !== undefined && row !== undefined) {
      return headAgain(context, entry, row, size);
    }
    if (isBorn) return void metadata.inodes.update(inode.id, { synced: "quarantined" });
    if (entry === undefined || inode.synced !== "never") return;
    if (size === undefined && inode.size > 0) {
      metadata.inodes.update(inode.id, { size: 0 });
      log.warn({ name: entry.name, size: inode.size }, "a new file that was never synced is empty after power loss");
    }
  });
}

/** In bytes. Undefined: the inode has no cache file. */
async function sizeOfCopy({ runtime, paths }: LocalFiles & Host, { kernelNodeId }: Inode): Promise<number | undefined> {
  try {
    return (await runtime.files.stat(paths.cacheFile(kernelNodeId))).size;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/**
 * The name shows the gateway's version again. Local content, if it has bytes, is kept beside it as a recovered copy.
 */
function headAgain(context: Rows & Host & Tree, entry: Entry, row: NodeRow, size: number | undefined): void {
  const { metadata, log } = context;
  const { base, nodeId } = row;
  if (base === null || nodeId === null) return;
  const old = metadata.inodes.get(entry.inode);
  const { link, ...attributes } = base.attributes;
  const head = metadata.inodes.create({
    kind: "file",
    attributes,
    size: base.size,
    hash: base.hash,
    originNode: nodeId,
    originVersion: base.head,
    content: "clean",
    atime: old?.atime ?? "0.000000000",
    ctime: old?.ctime ?? "0.000000000",
  });
  if (link !== undefined && link.hash === base.hash) {
    metadata.inodes.update(head.id, { linkGroup: link.group, saves: savesOfLink(link) });
  }
  const copy = size === undefined || size === 0 ? undefined : keepCopy(context, entry, row, "recovered");
  metadata.entries.setInode(entry.id, head.id);
  const fields = { name: entry.name, ...(copy === undefined ? {} : { copy }) };
  log.warn(fields, "content that was never synced does not replace the gateway's after power loss");
}

/* The reason for which a change stays here although the gateway did not refuse it. */

/** The content may be half-written: see the top of this file. */
export const QUARANTINE_REASON =
  'held: being written when the machine went down; save it again, or "wsfs queue retry" sends it as it is';
