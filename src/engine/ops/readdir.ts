/** Listings: opendir, readdir, releasedir. The rows are the listing; an entry's id is its cookie. */
import { FIRST_COOKIE, ROOT_INODE } from "../../metadata/metadata.ts";
import { type Caller, type FolderEntry, FsError, type HandleId, type KernelNodeId, type Opened } from "../api/index.ts";
import type { Handle, Kernel, Rows } from "../core/index.ts";
import type { Incoming } from "../remote/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Prefetch } from "./prefetch.ts";

type FolderHandle = Extract<Handle, { kind: "folder" }>;

const DOT = 1;
const DOT_DOT = 2;

export async function opendir(
  context: Kernel & Tree & Incoming,
  caller: Caller,
  kernelNodeId: KernelNodeId,
): Promise<Opened> {
  const folder = context.requirements.folder(kernelNodeId);
  const handle = context.handles.give(caller, kernelNodeId, {
    kind: "folder",
    inode: folder.id,
    directoryStream: undefined,
  });
  context.folders.visit(folder.id);
  return { handle, keepCache: folder.listed !== null && context.kernel.isListed(folder.id) };
}

export async function readdir(
  context: Rows & Kernel & Tree & Incoming & Prefetch,
  caller: Caller,
  handleId: HandleId,
  cookie: number,
  limit: number,
  withAttributes: boolean,
): Promise<FolderEntry[]> {
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "folder") throw new FsError("EBADF", `no open folder ${handleId}`);
  const { metadata } = context;
  const known = metadata.inodes.get(handle.inode);
  if (known === undefined) return [];
  context.folders.visit(known.id);
  context.folderUse.note(known.id);
  if (cookie === 0 || known.listed === null) await context.folderPrefetch.complete(known.id, caller.signal);

  // A listing from the start shows the folder as it is now. A program may also begin with a cookie of another handle.
  if (handle.directoryStream === undefined || cookie === 0) {
    closeStream(context, handle);
    handle.directoryStream = metadata.entries.openStream(known.id);
    // The kernel may keep a listing only if it was read from its start.
    if (cookie === 0) context.kernel.noteListed(known.id);
  }
  const listed: FolderEntry[] = [];
  if (cookie < DOT) listed.push({ name: ".", inode: known.id, kind: "folder", cookie: DOT });
  if (cookie < DOT_DOT && listed.length < limit) {
    const [own] = metadata.entries.ofInode(known.id);
    listed.push({ name: "..", inode: own?.parent ?? ROOT_INODE, kind: "folder", cookie: DOT_DOT });
  }
  for (const entry of metadata.entries.readStream(
    handle.directoryStream,
    Math.max(cookie, FIRST_COOKIE),
    limit - listed.length,
  )) {
    const inode = metadata.inodes.get(entry.inode);
    if (inode === undefined) continue;
    const line = { name: entry.name, inode: inode.id, kind: inode.kind, cookie: entry.id };
    listed.push(withAttributes ? { ...line, found: await context.stats.found(inode) } : line);
  }
  return listed;
}

function closeStream(context: Rows, handle: FolderHandle): void {
  if (handle.directoryStream !== undefined) context.metadata.entries.closeStream(handle.directoryStream);
  handle.directoryStream = undefined;
}

export async function releasedir(context: Rows & Kernel, handleId: HandleId): Promise<void> {
  const handle = context.handles.get(handleId);
  context.handles.delete(handleId);
  if (handle?.kind !== "folder") return;
  context.handleTable.remove(handleId);
  closeStream(context, handle);
}
