/**
 * Files that programs here have open for writing, and whose names have gone on without them: nothing unsent was in them
 * when somebody elsewhere wrote another version, or removed or replaced the name, so the name shows that at once. The
 * program goes on with its bytes as after a rename over its file on any disk: they are an inode without a name
 * (metadata/overtaken.ts). What it writes from then on gets a name again, once: that of a copy beside, or its own, if
 * that was removed and is free. From there on it is a file as any other.
 *
 *     overtaken ──written and cut (cut.ts)───────────────────────────► named
 *        ├─ closed, or left by a mount that ended, with changes ──────► named
 *        └─ the same, as it was ──────────────────────────────────────► a file without a name, which goes
 *
 * Each arrow is one transaction. Before a byte changes the rows say so (mark-written.ts), and what the kernel writes by
 * itself is found by its hash after a crash (recover.ts): dirty content of an overtaken file never goes (nameless.ts).
 */
import { nameProblem } from "../../contract/names.ts";
import type { Overtaken, Place } from "../../metadata/detached-files.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { DetachedFile } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import { dropSnapshot, handOver, logNames, pinMtime, writersOf } from "../files/index.ts";
import { createUnborn, fileTimeText, makeFolder } from "../tree/index.ts";
import { leaveGroup } from "./link-groups.ts";
import { freeConflictName } from "./name-conflicts.ts";

/**
 * To be called before its last names go, which the caller takes away in the same transaction. Nothing unsent is in it:
 * it is this version.
 */
export function detachFromName(
  context: Rows & LocalFiles & Uploads & Host,
  inode: Inode,
  entry: Entry,
  version: Pick<Inode, "originNode" | "originVersion" | "hash">,
  isRemoved: boolean,
): void {
  const { metadata } = context;
  pinMtime(context, inode.id);
  leaveGroup(context, inode.id);
  const { hash } = version;
  metadata.detachedFiles.add({ inode: inode.id, way: wayTo(context, entry), isRemoved, hash });
  // A name fewer, as far as the program that has it can see.
  metadata.inodes.update(inode.id, { ctime: fileTimeText(context) });
  if (inode.content !== "dirty") return;
  // Its bytes were found to be that version, which was not said yet.
  metadata.inodes.update(inode.id, { content: "open", ...version });
  for (const snapshot of metadata.snapshots.unusedOf(inode.id)) dropSnapshot(context, snapshot.id);
}

/** Within a transaction: what was written to it has a name from here on. */
export function renameDetached(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  { inode: id, way, isRemoved, dirtySince }: Overtaken,
): void {
  const { metadata, activity, log } = context;
  const own = way.at(-1)?.name ?? "";
  const folder = folderOf(context, way);
  const isFree = isRemoved && nameProblem(own) === undefined && metadata.entries.find(folder, own) === undefined;
  const name = isFree ? own : freeConflictName(context, folder, own);
  createUnborn(context, metadata.entries.create(folder, name, id).id, "file", dirtySince);
  metadata.detachedFiles.remove(id);
  logNames(context, id);
  if (isFree) return;
  metadata.afterCommit(activity.conflicted);
  log.warn({ name: own, copy: name }, "written here after it was changed elsewhere: both are kept");
}

/** What becomes of those that nobody has open for writing any more. */
export function resolveDetached(context: Rows & LocalFiles & Remote & Uploads & Host): void {
  const { metadata } = context;
  for (const detached of metadata.detachedFiles.all()) {
    const inode = metadata.inodes.get(detached.inode);
    if (inode === undefined || writersOf(context, inode) > 0) continue;
    metadata.transaction(() => {
      if (inode.content !== "clean") return renameDetached(context, detached);
      metadata.detachedFiles.remove(inode.id);
      handOver(context, inode.id);
    });
  }
}

/** Of which nothing has a name yet. */
export function detachedFiles({ metadata }: Pick<Rows, "metadata">): DetachedFile[] {
  return metadata.detachedFiles.all().map((detached) => {
    const { inode, isRemoved, dirtySince } = detached;
    return { path: pathOf(detached), inode, isRemoved, isWritten: dirtySince !== null };
  });
}

/** Where it was when it was overtaken. */
export const pathOf = ({ way }: Overtaken) => `/${way.map(({ name }) => name).join("/")}`;

function wayTo({ metadata }: Pick<Rows, "metadata">, entry: Entry): Place[] {
  const way: Place[] = [];
  for (let at: Entry | undefined = entry; at !== undefined && at.parent !== at.inode; ) {
    way.unshift({ folder: at.parent, name: at.gatewayName ?? at.name });
    [at] = metadata.entries.ofInode(at.parent);
  }
  return way;
}

/** The folder it was in. One that went meanwhile comes back with it: a new one, in the one above. */
function folderOf(context: Rows & LocalFiles & Remote & Uploads & Host, way: readonly Place[]): InodeId {
  const { metadata } = context;
  const isThere = (folder: InodeId) => folder === ROOT_INODE || metadata.entries.links(folder) > 0;
  const from = way.findLastIndex((place) => isThere(place.folder));
  let folder = way[from]?.folder ?? ROOT_INODE;
  for (const { name } of way.slice(Math.max(0, from), -1)) {
    const there = metadata.entries.find(folder, name);
    if (there !== undefined && metadata.inodes.get(there.inode)?.kind !== "folder") return folder;
    folder = there?.inode ?? makeFolder(context, folder, name);
  }
  return folder;
}
