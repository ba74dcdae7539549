/** Handles of files: open, the open of create, release. */
import type { Inode } from "../../metadata/inodes.ts";
import {
  type BackingId,
  type Caller,
  FsError,
  fromDisk,
  type HandleId,
  type KernelNodeId,
  type Opened,
  type OpenFlags,
} from "../api/index.ts";
import type { Handle, Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import type { Prefetch } from "./prefetch.ts";

export async function open(
  context: Rows & LocalFiles & Kernel & Remote & Tree & Outgoing & Prefetch,
  caller: Caller,
  kernelNodeId: KernelNodeId,
  flags: OpenFlags,
): Promise<Opened> {
  const inode = context.requirements.inode(kernelNodeId);
  if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
  if (inode.kind === "symlink") throw new FsError("ELOOP", "a symlink");
  if (inode.kind !== "file") throw new FsError("ENXIO", `a ${inode.kind} is opened by the kernel`);
  requireShown(context, inode, kernelNodeId);
  const openIt = () => openInode(context, caller, inode, flags);
  if (flags.truncate) return context.cacheFiles.whileTruncating(kernelNodeId, openIt);
  return flags.write ? whenFetched(context, kernelNodeId, caller.signal, openIt) : openIt();
}

/**
 * Throws ESTALE for a superseded or detached file, which takes no new opens: the kernel then looks the name up again.
 * Programs that have the file open go on with it.
 */
export function requireShown({ metadata }: Pick<Rows, "metadata">, inode: Inode, kernelNodeId: KernelNodeId): void {
  if (inode.kernelNodeId !== kernelNodeId || metadata.detachedFiles.get(inode.id) !== undefined) {
    throw new FsError("ESTALE", `kernel node id ${kernelNodeId} is superseded`);
  }
}

/**
 * Runs `then`, which admits a writer. Where the gateway shows only heads, the whole file is fetched first: missing
 * bytes belong to a version that cannot be read any more once it is not the head, and unverified ranges would count as
 * missing after a crash. The file is not evicted before `then` is over. Rejects with ENOSPC when the disk has no room
 * for the file, as fetchAll does, or as `then` does.
 */
export async function whenFetched<T>(
  context: LocalFiles & Remote,
  kernelNodeId: KernelNodeId,
  signal: AbortSignal,
  then: () => Promise<T>,
): Promise<T> {
  if (context.client.features.isFull) return then();
  const cacheFile = await context.cacheFiles.open(kernelNodeId, { write: false });
  try {
    await cacheFile.fetchAll(signal);
    if (!cacheFile.isKept) throw new FsError("ENOSPC", "the disk has no room for the whole file");
    return await then();
  } finally {
    await cacheFile.close({ write: false });
  }
}

/**
 * Fetches the whole file, if the gateway shows only heads. For a change of names, which checks the row again after it.
 */
export function fetchWholeFile(
  context: LocalFiles & Remote,
  kernelNodeId: KernelNodeId,
  signal: AbortSignal,
): Promise<void> {
  return whenFetched(context, kernelNodeId, signal, async () => {});
}

/** How many times a newer version may come while the one before is being fetched. */
const TRIES = 10;

/**
 * Runs a change of names by which content goes to another node. `bring` fetches the bytes that have to be here first;
 * `change` makes the change in one transaction. `change` returns undefined when a newer version came meanwhile, whose
 * bytes have to be fetched first. Rejects with EBUSY when that happens TRIES times, with EINTR when the program is
 * interrupted, or as `bring` and `change` do.
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
  // The file is saved elsewhere as fast as it is fetched here.
  throw new FsError("EBUSY", `${JSON.stringify(name)} changes all the time`);
}

/** True: a new file that is opened so may be written by passthrough at once. False: its first write comes to us. */
export function isPassthroughAtOnce({ passthrough, fileState }: LocalFiles, flags: OpenFlags): boolean {
  return passthrough.isOn && !fileState.isUnswept && isWriting(flags);
}

const isWriting = ({ write, truncate }: OpenFlags) => write || truncate;

/**
 * For the first open of a new file. Call it in the transaction that makes its inode: it makes the row of the cache file
 * and marks a writer, which must be in the rows before the file is made and the writer is admitted. False: openInode
 * has to make the row.
 */
export function prepareOpen(context: Rows & LocalFiles, made: Inode, flags: OpenFlags): boolean {
  const hasRow = context.cacheFiles.rowOfNewFile(made.kernelNodeId);
  if (hasRow && isWriting(flags)) context.metadata.writers.begin(made.id);
  return hasRow;
}

/** Opens the new file, after that transaction. Rejects as `open` does. */
export function openCreated(
  context: LocalFiles & Kernel & Tree & Outgoing & Prefetch,
  caller: Caller,
  { inode, hasRow }: { readonly inode: Inode; readonly hasRow: boolean },
  flags: OpenFlags,
): Promise<Opened> {
  if (inode.hash === null) context.dirtyFiles.dirty(inode);
  return openInode(context, caller, inode, flags, hasRow);
}

/** Waits for the local disk only: bytes are fetched when they are read. */
async function openInode(
  context: LocalFiles & Kernel & Tree & Outgoing & Prefetch,
  caller: Caller,
  inode: Inode,
  flags: OpenFlags,
  isNew = false,
): Promise<Opened> {
  const write = isWriting(flags);
  if (write) context.requirements.writable();
  const cacheFile = await context.cacheFiles.open(inode.kernelNodeId, { write, isNew });
  let backing: BackingId | undefined;
  let isCounted = false;
  let handle: HandleId;
  try {
    // A file that was made for this open is empty. Other programs may have written to it since: those bytes stay.
    if (flags.truncate && !isNew) await cacheFile.truncate(caller, 0);
    backing = await cacheFile.attach(write);
    isCounted = true;
    const opened = {
      kind: "file",
      cacheFile,
      write,
      append: flags.append,
      reader: cacheFile.createReader(),
    } as const;
    handle = context.handles.give(caller, cacheFile.kernelNodeId, opened);
  } catch (error) {
    // The kernel gets an error, so it does not know that the file may have been truncated.
    cacheFile.shownUnknown();
    if (isCounted) cacheFile.detach(write);
    await cacheFile.close({ write });
    throw fromDisk(error, `cache file ${cacheFile.kernelNodeId} cannot be opened`);
  }
  // A change of an earlier writer that has no snapshot yet must not wait until this writer closes.
  if (write) context.snapshots.whenQuiet(cacheFile);
  else context.filePrefetch.opened(cacheFile);
  // A kernel node id has one content only, so the kernel's pages of it are right, unless downloaded bytes were found
  // wrong.
  const keepCache = !context.fileState.takeDistrust(cacheFile.kernelNodeId);
  return { handle, keepCache, noFlush: !write, ...(backing === undefined ? {} : { backing }) };
}

/** RELEASE. Never fails, because the program does not wait for it. */
export async function release(context: LocalFiles & Kernel & Host, handleId: HandleId): Promise<void> {
  const handle = context.handles.get(handleId);
  context.handles.delete(handleId);
  context.fastPath.end(handleId);
  if (handle?.kind !== "file") return;
  const { cacheFile, write } = handle;
  const wasPassthrough = write && cacheFile.backingId !== undefined;
  cacheFile.detach(write);
  // From here on, a daemon that takes over finds a writer in the rows without a handle, as after any crash.
  context.handleTable.remove(handleId);
  context.runtime.step("release: not written down any more");
  await (wasPassthrough ? cacheFile.closePassthrough() : cacheFile.close({ write }));
}

type FileHandle = Extract<Handle, { kind: "file" }>;

/** The open file behind a handle. Throws EBADF. */
export function fileOf(context: Pick<Kernel, "handles">, handleId: HandleId): FileHandle {
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "file") throw new FsError("EBADF", `no open file ${handleId}`);
  return handle;
}

/** The open file behind a handle that may write. Throws EBADF, also for a handle that only reads. */
export function writableOf(context: Pick<Kernel, "handles">, handleId: HandleId): FileHandle {
  const handle = fileOf(context, handleId);
  if (!handle.write) throw new FsError("EBADF", `handle ${handleId} is not open for writing`);
  return handle;
}
