/** Handles: open, what create opens, release. */
import type { Inode } from "../../metadata/inodes.ts";
import {
  type Caller,
  FsError,
  fromDisk,
  type HandleId,
  type KernelNodeId,
  type Opened,
  type OpenFlags,
} from "../api/index.ts";
import {
  addHandle,
  type Context,
  type Handle,
  type Host,
  type Kernel,
  type LocalFiles,
  type Remote,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import {
  attachPassthrough,
  closeCacheFile,
  closePassthrough,
  createReader,
  detachPassthrough,
  logDirty,
  openCacheFile,
  rowOfNewFile,
  truncateBytes,
  whileTruncating,
} from "../files/index.ts";
import { inodeOf, requireWritable } from "../tree/index.ts";
import { fetchAll, snapshotWhenQuiet } from "../upload/index.ts";
import * as siblings from "./prefetch-files.ts";

export async function open(context: Context, caller: Caller, lineage: KernelNodeId, flags: OpenFlags): Promise<Opened> {
  const inode = inodeOf(context, lineage);
  if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
  if (inode.kind === "symlink") throw new FsError("ELOOP", "a symlink");
  if (inode.kind !== "file") throw new FsError("ENXIO", `a ${inode.kind} is opened by the kernel`);
  requireShown(context, inode, lineage);
  const openIt = () => openInode(context, caller, inode, flags);
  if (flags.truncate) return whileTruncating(context, lineage, openIt);
  return flags.write ? whenFetched(context, lineage, caller.signal, openIt) : openIt();
}

/** Only who has it open goes on with what no name shows any more: the kernel looks the name up again. */
export function requireShown({ metadata }: Pick<Rows, "metadata">, inode: Inode, lineage: KernelNodeId): void {
  if (inode.lineage !== lineage || metadata.detachedFiles.get(inode.id) !== undefined) {
    throw new FsError("ESTALE", `lineage ${lineage} is superseded`);
  }
}

/**
 * Before a writer comes, by `then`: bytes that are missing belong to a version that nobody can read any more
 * once it is not the head, where the gateway shows no others. What is not checked yet would count as
 * missing after a crash. Until `then` is over nothing of it goes again.
 */
export async function whenFetched<T>(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  lineage: KernelNodeId,
  signal: AbortSignal,
  then: () => Promise<T>,
): Promise<T> {
  if (context.client.features.versions) return then();
  const cacheFile = await openCacheFile(context, lineage, { write: false });
  try {
    await fetchAll(context, cacheFile, signal);
    if (!cacheFile.disk.isKept) throw new FsError("ENOSPC", "the disk has no room for what has to be here");
    return await then();
  } finally {
    await closeCacheFile(context, cacheFile, { write: false });
  }
}

/** The same for a change of names, which looks at the row again when its turn comes. */
export function fetchWholeFile(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  lineage: KernelNodeId,
  signal: AbortSignal,
): Promise<void> {
  return whenFetched(context, lineage, signal, async () => {});
}

/** So often a newer version may come while the one before is fetched. */
const TRIES = 10;

/**
 * A change of names that gives content another node: `bring` has what has to be here first, `change` is
 * the change, in one transaction. Undefined of that: there is a newer version since, whose bytes have to come first.
 */
export async function whenWhole<T>(
  caller: Caller,
  name: string,
  bring: () => Promise<void>,
  change: () => T | undefined,
): Promise<T> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (caller.signal.aborted) throw new FsError("EINTR", "interrupted");
    await bring();
    const changed = change();
    if (changed !== undefined) return changed;
  }
  // Somebody saves it as fast as it is fetched.
  throw new FsError("EBUSY", `${JSON.stringify(name)} changes all the time`);
}

/** The first open of a file that is made now: served by us, it is empty until the first write comes. */
export function isPassthroughAtOnce({ passthrough, fileState }: LocalFiles, flags: OpenFlags): boolean {
  return passthrough.isOn && !fileState.isUnswept && isWriting(flags);
}

const isWriting = ({ write, truncate }: OpenFlags) => write || truncate;

/**
 * The first open of a file, within the transaction that makes its inode: what the rows have to say before
 * its local file is made, and before a writer is let in. Whether that file has its row.
 */
export function prepareOpen(context: Rows & LocalFiles & Host, made: Inode, flags: OpenFlags): boolean {
  const hasRow = rowOfNewFile(context, made.lineage);
  if (hasRow && isWriting(flags)) context.metadata.writers.begin(made.id);
  return hasRow;
}

/** … and when that is committed. */
export function openCreated(
  context: Context,
  caller: Caller,
  { inode, hasRow }: { readonly inode: Inode; readonly hasRow: boolean },
  flags: OpenFlags,
): Promise<Opened> {
  if (inode.hash === null) logDirty(context, inode);
  return openInode(context, caller, inode, flags, hasRow);
}

/** Waits for the local disk only: bytes are fetched when they are read. */
async function openInode(
  context: Context,
  caller: Caller,
  inode: Inode,
  flags: OpenFlags,
  isNew = false,
): Promise<Opened> {
  const write = isWriting(flags);
  if (write) requireWritable(context);
  const cacheFile = await openCacheFile(context, inode.lineage, { write, isNew });
  let backing: number | undefined;
  let isCounted = false;
  let handle: HandleId;
  try {
    // One that was made for this open is empty; what another one wrote to it since came later than this.
    if (flags.truncate && !isNew) await truncateBytes(context, caller, cacheFile, 0);
    backing = await attachPassthrough(context, cacheFile, write);
    isCounted = true;
    const opened = { kind: "file", live: cacheFile, write, append: flags.append, reader: createReader() } as const;
    handle = addHandle(context, caller, cacheFile.lineage, opened);
  } catch (error) {
    // The kernel hears that nothing was opened, not that the file was cut short for it.
    cacheFile.changes.shownSize = "unknown";
    if (isCounted) detachPassthrough(context, cacheFile, write);
    await closeCacheFile(context, cacheFile, { write });
    throw fromDisk(error, `live file ${cacheFile.lineage} cannot be opened`);
  }
  // What an earlier writer left uncut is not to wait for this one's end.
  if (write) snapshotWhenQuiet(context, cacheFile);
  else siblings.opened(context, cacheFile);
  // A lineage has one content only, so pages the kernel has of it are right, unless what they were
  // made of turned out not to be what the gateway said it was.
  const keepCache = !context.fileState.distrusted.delete(cacheFile.lineage);
  return { handle, keepCache, noFlush: !write, ...(backing === undefined ? {} : { backing }) };
}

/** Never fails: the program has long gone on. */
export async function release(context: Context, handleId: HandleId): Promise<void> {
  const handle = context.handles.get(handleId);
  context.handles.delete(handleId);
  context.fastPath.end(handleId);
  if (handle?.kind !== "file") return;
  const { live: cacheFile, write } = handle;
  const wasPassthrough = write && cacheFile.passthrough.backingId !== undefined;
  detachPassthrough(context, cacheFile, write);
  // From here on a successor finds a writer that is gone by its rows, as after any crash.
  context.handleTable.remove(handleId);
  context.runtime.step("release: not written down any more");
  await (wasPassthrough ? closePassthrough(context, cacheFile) : closeCacheFile(context, cacheFile, { write }));
}

export type FileHandle = Extract<Handle, { kind: "file" }>;

export function fileOf(context: Pick<Kernel, "handles">, handleId: HandleId): FileHandle {
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "file") throw new FsError("EBADF", `no open file ${handleId}`);
  return handle;
}

export function writableOf(context: Pick<Kernel, "handles">, handleId: HandleId): FileHandle {
  const handle = fileOf(context, handleId);
  if (!handle.write) throw new FsError("EBADF", `handle ${handleId} is not open for writing`);
  return handle;
}
