/** What changes bytes, and what makes them safe: write, truncate, fallocate, flush, fsync. */
import { addRange, subtractRange } from "../lib/ranges.ts";
import { hasCode } from "../lib/system-error.ts";
import { lookAgainAtInode } from "./changes.ts";
import type { Context } from "./context.ts";
import { cutGeneration } from "./cut.ts";
import { FsError, type FsErrorCode } from "./errors.ts";
import { cutMissing, missingParts, requireRange } from "./fetch.ts";
import type { Caller, HandleId, Lineage } from "./filesystem.ts";
import { closeLive, keepMissing, markWritten, openLive, rowsFromFile } from "./live.ts";
import type { LiveFile } from "./live-file.ts";
import { withoutPrivileges } from "./privileges.ts";
import { liveOf } from "./read.ts";
import { inodeOf, requireWritable } from "./stat.ts";

const KEEP_SIZE = 1;
const PUNCH_HOLE = 2;
const ZERO_RANGE = 16;

function writableOf(context: Context, handleId: HandleId): LiveFile {
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "file" || !handle.write)
    throw new FsError("EBADF", `handle ${handleId} is not open for writing`);
  return handle.live;
}

const DISK_ERRORS: readonly FsErrorCode[] = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EOPNOTSUPP", "EINVAL"];

/** What the state disk refuses, the program gets to hear. */
async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof FsError) throw error;
    const code = DISK_ERRORS.find((candidate) => hasCode(error, candidate)) ?? "EIO";
    throw new FsError(code, "the state disk refused it", { cause: error });
  }
}

export async function write(
  context: Context,
  _caller: Caller,
  handleId: HandleId,
  offset: number,
  data: Uint8Array,
  options: { killPrivileges: boolean },
): Promise<void> {
  const live = writableOf(context, handleId);
  markWritten(context, live);
  if (options.killPrivileges) dropPrivileges(context, live);
  await changeBytes(context, live, offset, offset + data.length, () => live.file.write(data, offset));
}

/**
 * Changes [start, end). Where bytes of the origin were missing they are no longer wanted; that is in
 * the row before the change is acknowledged, but after it is made: a crash in between fetches them.
 */
async function changeBytes(
  context: Context,
  live: LiveFile,
  start: number,
  end: number,
  change: () => Promise<void>,
): Promise<void> {
  const wasMissing = live.missing.length > 0 ? missingParts(live.missing, start, end) : [];
  if (wasMissing.length === 0) return onDisk(change());
  live.missing = subtractRange(live.missing, start, end);
  try {
    await live.filling;
    await onDisk(change());
  } catch (error) {
    // Not written: they are missing still.
    for (const part of wasMissing) live.missing = addRange(live.missing, part.start, part.end);
    throw error;
  }
  keepMissing(context, live, (await live.file.stat()).size);
}

export async function truncate(
  context: Context,
  _caller: Caller,
  lineage: Lineage,
  size: number,
  handleId?: HandleId,
): Promise<void> {
  const inode = inodeOf(context, lineage);
  if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
  if (inode.kind !== "file") throw new FsError("EINVAL", `a ${inode.kind} has no size`);
  if (handleId !== undefined && context.handles.has(handleId)) {
    await truncateLive(context, writableOf(context, handleId), size);
    return;
  }
  requireWritable(context);
  const live = await openLive(context, lineage, { write: true });
  try {
    await truncateLive(context, live, size);
  } finally {
    await closeLive(context, live, { write: true });
  }
}

/** What was behind the new end is no longer wanted; what is new are zeros. */
export async function truncateLive(context: Context, live: LiveFile, size: number): Promise<void> {
  markWritten(context, live);
  const cutOff = missingParts(live.missing, size, Number.MAX_SAFE_INTEGER);
  cutMissing(live, size);
  try {
    await live.filling;
    await onDisk(live.file.truncate(size));
  } catch (error) {
    for (const part of cutOff) live.missing = addRange(live.missing, part.start, part.end);
    throw error;
  }
  keepMissing(context, live, size);
  await rowsFromFile(context, live);
}

export async function allocate(
  context: Context,
  caller: Caller,
  handleId: HandleId,
  mode: number,
  offset: number,
  length: number,
): Promise<void> {
  if ((mode & ~(KEEP_SIZE | PUNCH_HOLE | ZERO_RANGE)) !== 0) throw new FsError("EOPNOTSUPP", `fallocate mode ${mode}`);
  const live = writableOf(context, handleId);
  const end = offset + length;
  // Space for bytes that are not here yet would look like zeros.
  const isErasing = (mode & (PUNCH_HOLE | ZERO_RANGE)) !== 0;
  const { size } = await live.file.stat();
  if (!isErasing && live.missing.length > 0 && offset < size) {
    await requireRange(context, live, offset, Math.min(end, size), caller.signal);
  }
  markWritten(context, live);
  const change = () => live.file.allocate(mode, offset, length);
  if (isErasing) await changeBytes(context, live, offset, end, change);
  else await onDisk(change());
  await rowsFromFile(context, live);
}

/** A missing range is data: it belongs to the version the file grew from. */
export async function seek(
  context: Context,
  caller: Caller,
  handleId: HandleId,
  kind: "data" | "hole",
  offset: number,
): Promise<number | undefined> {
  const live = liveOf(context, handleId);
  if (live.missing.length > 0) {
    const { size } = await live.file.stat();
    if (offset >= size) return undefined;
    await requireRange(context, live, offset, size, caller.signal);
  }
  return live.file.seek(kind, offset);
}

function dropPrivileges(context: Context, live: LiveFile): void {
  const inode = context.metadata.inodes.get(live.inode);
  const mode = withoutPrivileges(inode?.attributes.mode);
  if (inode === undefined || mode === undefined) return;
  context.metadata.inodes.update(inode.id, { attributes: { ...inode.attributes, mode } });
}

/** close(2): the bytes and the row survive a crash of the daemon; with `durability remote` the gateway has them. */
export async function flush(context: Context, caller: Caller, handleId: HandleId): Promise<void> {
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "file" || !handle.write) return;
  await onDisk(rowsFromFile(context, handle.live));
  if (context.settings.durability === "remote") await untilRemote(context, handle.live, caller.signal);
}

/** fsync(2): the bytes, the row and the name also survive power loss. */
export async function fsync(context: Context, caller: Caller, handleId: HandleId, _dataOnly: boolean): Promise<void> {
  const live = liveOf(context, handleId);
  await onDisk(rowsFromFile(context, live));
  await onDisk(live.file.sync());
  if (!live.isNameSynced) await onDisk(context.paths.syncFolderOf(context.paths.live(live.lineage)));
  live.isNameSynced = true;
  await onDisk(context.syncRows());
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "file" || !handle.write) return;
  if (context.settings.durability === "remote") return untilRemote(context, live, caller.signal);
  live.isSyncAsked = true;
  lookAgainAtInode(context, live.inode);
}

/** fsync of a folder: the names are rows. */
export function syncNames(context: Context): Promise<void> {
  return onDisk(context.syncRows());
}

/** The gateway has the content as it is now, or says why not. */
async function untilRemote(context: Context, live: LiveFile, signal: AbortSignal): Promise<void> {
  const { metadata, activity } = context;
  const changes = metadata.inodes.get(live.inode)?.changes;
  while (!signal.aborted) {
    const inode = metadata.inodes.get(live.inode);
    const rows = metadata.entries.ofInode(live.inode).map((entry) => metadata.nodes.ofEntry(entry.id));
    if (inode === undefined || rows.length === 0) return;
    if (live.isWritten) await cutGeneration(context, inode.id, signal);
    const current = metadata.inodes.get(live.inode);
    if (current === undefined || current.content !== "dirty" || current.changes !== changes) return;
    const refusal = rows.find((row) => row?.parked != null)?.parked;
    if (refusal != null) throw new FsError("EIO", refusal);
    if (!context.network.may("node.node.update")) throw new FsError("EACCES", "the token lacks node.node.update");
    const login = context.network.loginNeeded;
    if (login !== undefined) throw new FsError("EACCES", login);
    if (!context.network.isOnline) throw new FsError("EIO", "the gateway does not answer");
    lookAgainAtInode(context, live.inode);
    await activity.nextProgress(signal);
  }
  throw new FsError("EINTR", "interrupted while the gateway was waited for");
}
