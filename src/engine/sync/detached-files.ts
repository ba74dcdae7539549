/**
 * Detached files. A program here has the file open for writing, and its name went on without it: another mount wrote
 * another version, or removed or replaced the name. Nothing unsent was in the file then, so the name shows the change
 * at once. The program goes on with the old bytes, as after a rename over its file on any disk. They are an inode
 * without a name (metadata/detached-files.ts). Once the program has written to it, the inode gets a name again: its own
 * name if that was removed and is free, else that of a copy. From then on it is a file like any other.
 *
 *     detached ─┬─ changed, and a snapshot was taken (upload/snapshot.ts) ─────────► named
 *               ├─ changed, then closed, or left by a mount that ended ────────────► named
 *               └─ unchanged, then closed, or left by a mount that ended ──────────► an orphan, which goes
 *
 * Each arrow is one transaction. The rows say "changed" before a byte changes (files/set-dirty.ts). Writes in
 * passthrough are found after a crash, by the hash of the file (start/recover.ts). Dirty content of a detached file is
 * never removed (files/orphans.ts).
 */
import { nameProblem } from "../../contract/names.ts";
import type { DetachedFileRow } from "../../metadata/detached-files.ts";
import type { Entry, NameInFolder } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { EngineStatus } from "../api/index.ts";
import type { Host, LocalFiles, Rows, Uploads } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { leaveGroup } from "./link-groups.ts";
import { freeConflictName } from "./name-conflicts.ts";

/**
 * Detaches a file whose last names the caller removes next, in the same transaction. The inode holds nothing unsent:
 * its content is `version`. `isRemoved`: the name goes; false: the name shows another inode.
 */
export function detachFromName(
  context: Rows & LocalFiles & Tree,
  inode: Inode,
  entry: Entry,
  version: Pick<Inode, "originNode" | "originVersion" | "hash">,
  isRemoved: boolean,
): void {
  const { metadata } = context;
  context.fileTimes.pinMtime(inode.id);
  leaveGroup(context, inode.id);
  const { hash } = version;
  metadata.detachedFiles.add({ inode: inode.id, way: wayTo(context, entry), isRemoved, hash });
  // The link count of the file falls, which changes the ctime.
  metadata.inodes.update(inode.id, { ctime: context.stats.nowText() });
  if (inode.content !== "dirty") return;
  // The bytes were found to be that version, and the rows did not say so yet.
  metadata.inodes.update(inode.id, { content: "open", ...version });
  for (const snapshot of metadata.snapshots.unusedOf(inode.id)) context.snapshotFiles.drop(snapshot.id);
}

/** Gives a detached file a name, so that its content is sent. Runs inside the caller's transaction. */
export function renameDetached(
  context: Rows & LocalFiles & Uploads & Host & Tree,
  { inode: id, way, isRemoved, dirtySince }: DetachedFileRow,
): void {
  const { metadata, activity, log } = context;
  const own = way.at(-1)?.name ?? "";
  const folder = folderOf(context, way);
  const isFree = isRemoved && nameProblem(own) === undefined && metadata.entries.find(folder, own) === undefined;
  const name = isFree ? own : freeConflictName(context, folder, own);
  context.names.createUnborn(metadata.entries.create(folder, name, id).id, "file", dirtySince);
  metadata.detachedFiles.remove(id);
  context.dirtyFiles.named(id);
  if (isFree) return;
  metadata.afterCommit(activity.conflicted);
  log.warn({ name: own, copy: name }, "written here after it was changed elsewhere: both are kept");
}

/** Detached files without a writer are detached no longer: changed ones get a name, the others become orphans. */
export function resolveDetached(context: Rows & LocalFiles & Uploads & Host & Tree): void {
  const { metadata } = context;
  for (const detached of metadata.detachedFiles.all()) {
    const inode = metadata.inodes.get(detached.inode);
    if (inode === undefined || context.cacheFiles.writersOf(inode) > 0) continue;
    metadata.transaction(() => {
      if (inode.content !== "clean") return renameDetached(context, detached);
      metadata.detachedFiles.remove(inode.id);
      context.orphans.renewIfOrphan(inode.id);
    });
  }
}

/** The detached files, as the status shows them. */
export function detachedFiles({ metadata }: Pick<Rows, "metadata">): NonNullable<EngineStatus["overtaken"]> {
  return metadata.detachedFiles.all().map((detached) => {
    const { inode, isRemoved, dirtySince } = detached;
    return { path: pathOf(detached), inode, isRemoved, isWritten: dirtySince !== null };
  });
}

/** The path that the file had when it was detached. */
export const pathOf = ({ way }: DetachedFileRow) => `/${way.map(({ name }) => name).join("/")}`;

function wayTo({ metadata }: Pick<Rows, "metadata">, entry: Entry): NameInFolder[] {
  const way: NameInFolder[] = [];
  for (let at: Entry | undefined = entry; at !== undefined && at.parent !== at.inode; ) {
    way.unshift({ folder: at.parent, name: at.gatewayName ?? at.name });
    [at] = metadata.entries.ofInode(at.parent);
  }
  return way;
}

/**
 * The folder that the file was in. If it is gone, it is made anew, with the folders above it that are gone too. If a
 * file is in the way, the folder above it.
 */
function folderOf(context: Rows & Tree, way: readonly NameInFolder[]): InodeId {
  const { metadata } = context;
  const isThere = (folder: InodeId) => folder === ROOT_INODE || metadata.entries.links(folder) > 0;
  const from = way.findLastIndex((place) => isThere(place.folder));
  let folder = way[from]?.folder ?? ROOT_INODE;
  for (const { name } of way.slice(Math.max(0, from), -1)) {
    const there = metadata.entries.find(folder, name);
    if (there !== undefined && metadata.inodes.get(there.inode)?.kind !== "folder") return folder;
    folder = there?.inode ?? context.names.makeFolder(folder, name);
  }
  return folder;
}
