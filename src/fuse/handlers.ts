/**
 * The handler of each opcode: it turns a decoded request into calls of the FileSystem, and the result into the reply.
 * This file knows bits and errnos of the protocol, no bytes. It refuses values that the interface of a file system
 * cannot express (sizes over 2^53, unknown flags).
 */
import {
  type Attributed,
  type Caller,
  type Done,
  type FileSystem,
  type Found,
  FsError,
  type FsErrorCode,
  type KernelNodeId,
  type NegativeEntry,
  type Opened,
  type OpenFlags,
  type SetAttributes,
  type SpaceInfo,
} from "../engine/api/index.ts";
import { kindOfMode } from "./attributes.ts";
import {
  FATTR,
  FSYNC_FDATASYNC,
  GETATTR_FH,
  O,
  OPEN_KILL_SUIDGID,
  RENAME_EXCHANGE,
  RENAME_NOREPLACE,
  S_ISUID_ISGID,
  SEEK_DATA,
  SEEK_HOLE,
  WRITE_KILL_SUIDGID,
  XATTR_CREATE,
  XATTR_REPLACE,
} from "./flags.ts";
import { MAX_WRITE } from "./init.ts";
import type { Fields, Struct, Values } from "./layout.ts";
import { createListing, isDots, type Listing } from "./listing.ts";
import type { XattrReply } from "./replies.ts";
import type * as structs from "./request-structs.ts";
import type { ForgetOne, NameRequest, RenameRequest, SetxattrRequest, WriteRequest } from "./requests.ts";

/** A request on its way: its caller, its node and its message. */
export interface Call {
  readonly fileSystem: FileSystem;
  readonly caller: Caller;
  readonly nodeid: KernelNodeId;
}

type In<S extends Struct<Fields>> = S extends Struct<infer F> ? Values<F> : never;

export function lookup({ fileSystem, caller, nodeid }: Call, { name }: NameRequest): Promise<Found | NegativeEntry> {
  return fileSystem.lookup(caller, nodeid, name);
}

export function forget(fileSystem: FileSystem, forgets: readonly ForgetOne[]): void {
  fileSystem.forget(forgets.map(({ nodeid, nlookup }) => ({ kernelNodeId: nodeid, count: nlookup })));
}

/** GETATTR and STATX: in both the same flag says that there is a handle. */
export function getattr(
  { fileSystem, caller, nodeid }: Call,
  { getattr_flags, fh }: In<typeof structs.GETATTR_IN>,
): Promise<Attributed> {
  return fileSystem.getattr(caller, nodeid, (getattr_flags & GETATTR_FH) !== 0 ? fh : undefined);
}

export function setattr(call: Call, request: In<typeof structs.SETATTR_IN>): Promise<Attributed> {
  const { fileSystem, caller, nodeid } = call;
  // A SETATTR without any field is a chown(2) that leaves owner and group as they are. Like every chown it removes
  // set-id bits.
  const change = request.valid === 0 ? { killPrivileges: true } : attributesToSet(request);
  const { handle, ...changes } = change;
  // The kernel also sends a SETATTR that changes nothing here: only a handle, or only ctime.
  if (Object.keys(changes).length === 0) return fileSystem.getattr(caller, nodeid, handle);
  return fileSystem.setattr(caller, nodeid, change);
}

function attributesToSet(request: In<typeof structs.SETATTR_IN>): SetAttributes {
  const has = (bit: number) => (request.valid & bit) !== 0;
  return {
    ...(has(FATTR.MODE) && { mode: request.mode & 0o7777 }),
    ...(has(FATTR.UID) && { uid: request.uid }),
    ...(has(FATTR.GID) && { gid: request.gid }),
    ...(has(FATTR.SIZE) && { size: representable(request.size, "EFBIG") }),
    ...timeToSet("atime", has(FATTR.ATIME), has(FATTR.ATIME_NOW), request.atime, request.atimensec),
    ...timeToSet("mtime", has(FATTR.MTIME), has(FATTR.MTIME_NOW), request.mtime, request.mtimensec),
    ...(has(FATTR.KILL_SUIDGID) && { killPrivileges: true }),
    ...(has(FATTR.FH) && { handle: request.fh }),
  };
}

function timeToSet(name: "atime" | "mtime", given: boolean, now: boolean, seconds: number, nanoseconds: number) {
  if (now) return { [name]: "now" as const };
  if (!given) return {};
  if (nanoseconds > 999_999_999) throw new FsError("EINVAL", `${name}: ${nanoseconds} nanoseconds`);
  return { [name]: { seconds, nanoseconds } };
}

export async function access({ fileSystem, caller, nodeid }: Call, { mask }: In<typeof structs.ACCESS_IN>) {
  await fileSystem.access(caller, nodeid, mask);
}

export function statfs({ fileSystem, caller }: Call): Promise<SpaceInfo> {
  return fileSystem.statfs(caller);
}

export function readlink({ fileSystem, caller, nodeid }: Call): Promise<string> {
  return fileSystem.readlink(caller, nodeid);
}

export function symlink({ fileSystem, caller, nodeid }: Call, request: { name: string; target: string }) {
  return fileSystem.symlink(caller, nodeid, request.name, request.target);
}

export function mknod({ fileSystem, caller, nodeid }: Call, request: In<typeof structs.MKNOD_IN> & NameRequest) {
  const kind = kindOfMode(request.mode);
  if (kind === undefined || kind === "folder" || kind === "symlink")
    throw new FsError("EINVAL", `mknod of mode 0${request.mode.toString(8)}`);
  return fileSystem.mknod(caller, nodeid, request.name, kind, request.mode & 0o7777, request.rdev);
}

export function mkdir({ fileSystem, caller, nodeid }: Call, request: In<typeof structs.MKDIR_IN> & NameRequest) {
  return fileSystem.mkdir(caller, nodeid, request.name, request.mode & 0o7777);
}

export function link({ fileSystem, caller, nodeid }: Call, request: { oldnodeid: KernelNodeId; name: string }) {
  return fileSystem.link(caller, request.oldnodeid, nodeid, request.name);
}

export function unlink({ fileSystem, caller, nodeid }: Call, { name }: NameRequest): Promise<void> {
  return fileSystem.unlink(caller, nodeid, name);
}

export function rmdir({ fileSystem, caller, nodeid }: Call, { name }: NameRequest): Promise<void> {
  return fileSystem.rmdir(caller, nodeid, name);
}

export function rename({ fileSystem, caller, nodeid }: Call, request: RenameRequest): Promise<void> {
  const { newdir, flags, oldName, newName } = request;
  const noReplace = (flags & RENAME_NOREPLACE) !== 0;
  const exchange = (flags & RENAME_EXCHANGE) !== 0;
  if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) !== 0 || (noReplace && exchange))
    throw new FsError("EINVAL", `rename flags ${flags}: NOREPLACE (1) or EXCHANGE (2) expected`);
  const from = { parent: nodeid, name: oldName };
  const to = { parent: newdir, name: newName };
  return fileSystem.rename(caller, from, to, { noReplace, exchange });
}

export function openFlags(flags: number): OpenFlags {
  const mode = flags & O.ACCMODE;
  return {
    read: mode === 0 || mode === O.RDWR,
    write: mode === O.WRONLY || mode === O.RDWR,
    append: (flags & O.APPEND) !== 0,
    truncate: (flags & O.TRUNC) !== 0,
    exclusive: (flags & O.EXCL) !== 0,
  };
}

export async function open(call: Call, request: In<typeof structs.OPEN_IN>): Promise<Opened> {
  const { fileSystem, caller, nodeid } = call;
  return finishOpen(call, request, await fileSystem.open(caller, nodeid, openFlags(request.flags)));
}

async function finishOpen(call: Call, request: In<typeof structs.OPEN_IN>, opened: Opened): Promise<Opened> {
  const { nodeid } = call;
  if ((request.open_flags & OPEN_KILL_SUIDGID) !== 0) await killPrivileges(call, nodeid, opened);
  return opened;
}

export async function create(call: Call, request: In<typeof structs.CREATE_IN> & NameRequest): Promise<Found & Opened> {
  const { fileSystem, caller, nodeid } = call;
  const mode = request.mode & 0o7777;
  return finishCreate(
    call,
    request,
    await fileSystem.create(caller, nodeid, request.name, mode, openFlags(request.flags)),
  );
}

async function finishCreate(
  call: Call,
  request: In<typeof structs.CREATE_IN>,
  created: Found & Opened,
): Promise<Found & Opened> {
  const { fileSystem } = call;
  const mode = request.mode & 0o7777;
  // A new file keeps the bits it was made with. Other bits mean that the file was there before and was truncated.
  const foreignBits = created.stat.mode & ~mode & S_ISUID_ISGID;
  if ((request.open_flags & OPEN_KILL_SUIDGID) === 0 || foreignBits === 0) return created;
  try {
    return { ...created, ...(await killPrivileges(call, created.kernelNodeId, created)) };
  } catch (error) {
    ungrant(fileSystem, [created]);
    throw error;
  }
}

/** When this fails, the kernel gets no handle and would never release it. So the handle is released here. */
async function killPrivileges(
  { fileSystem, caller }: Call,
  kernelNodeId: KernelNodeId,
  opened: Opened,
): Promise<Attributed> {
  try {
    return await fileSystem.setattr(caller, kernelNodeId, { killPrivileges: true, handle: opened.handle });
  } catch (error) {
    await fileSystem.release(opened.handle);
    throw error;
  }
}

export async function read({ fileSystem, caller }: Call, request: In<typeof structs.READ_IN>): Promise<Uint8Array> {
  const { fh, offset, size } = request;
  // A file is never that long.
  if (!Number.isSafeInteger(offset)) return new Uint8Array(0);
  const data = await fileSystem.read(caller, fh, offset, size);
  if (data.length > size) throw new Error(`read of ${size} bytes answered ${data.length}`);
  return data;
}

export async function write({ fileSystem, caller }: Call, request: WriteRequest): Promise<number> {
  const { fh, data, write_flags } = request;
  const offset = representable(request.offset, "EFBIG");
  representable(offset + data.length, "EFBIG");
  return fileSystem.write(caller, fh, offset, data, { killPrivileges: (write_flags & WRITE_KILL_SUIDGID) !== 0 });
}

export function flush({ fileSystem, caller }: Call, { fh }: In<typeof structs.FLUSH_IN>): Promise<void> {
  return fileSystem.flush(caller, fh);
}

export function fsync({ fileSystem, caller }: Call, request: In<typeof structs.FSYNC_IN>): Promise<void> {
  return fileSystem.fsync(caller, request.fh, (request.fsync_flags & FSYNC_FDATASYNC) !== 0);
}

export function release({ fileSystem }: Call, { fh }: In<typeof structs.RELEASE_IN>): Promise<void> {
  return fileSystem.release(fh);
}

export function allocate({ fileSystem, caller }: Call, request: In<typeof structs.FALLOCATE_IN>): Promise<void> {
  const offset = representable(request.offset, "EFBIG");
  const length = representable(request.length, "EFBIG");
  representable(offset + length, "EFBIG");
  return fileSystem.allocate(caller, request.fh, request.mode, offset, length);
}

export async function seek({ fileSystem, caller }: Call, request: In<typeof structs.LSEEK_IN>): Promise<number> {
  const { fh, offset, whence } = request;
  if (whence !== SEEK_DATA && whence !== SEEK_HOLE)
    throw new FsError("EINVAL", `whence ${whence}: SEEK_DATA (3) or SEEK_HOLE (4) expected`);
  const from = representable(offset, "ENXIO");
  const found = await fileSystem.seek(caller, fh, whence === SEEK_DATA ? "data" : "hole", from);
  if (found === undefined) throw new FsError("ENXIO", `nothing at or after ${from}`);
  return found;
}

export function opendir({ fileSystem, caller, nodeid }: Call): Promise<Opened> {
  return fileSystem.opendir(caller, nodeid);
}

export function readdir(call: Call, request: In<typeof structs.READ_IN>): Promise<Listing> {
  return list(call, request, false);
}

export function readdirplus(call: Call, request: In<typeof structs.READ_IN>): Promise<Listing> {
  return list(call, request, true);
}

/** The kernel asks for at most max_pages. A larger number must not make us allocate that much. */
const LONGEST_LISTING = MAX_WRITE;

/**
 * Asks for about as many entries as fit, until the reply is full or the folder ends. Entries that do not fit were
 * counted when they were answered, and are given back.
 */
async function list(call: Call, request: In<typeof structs.READ_IN>, withAttributes: boolean): Promise<Listing> {
  const { fileSystem, caller } = call;
  const listing = createListing(Math.min(request.size, LONGEST_LISTING), withAttributes);
  let cookie = representable(request.offset, "EINVAL");
  try {
    for (;;) {
      const entries = await fileSystem.readdir(caller, request.fh, cookie, Math.max(1, listing.room()), withAttributes);
      const added = entries.findIndex((entry) => !listing.add(entry));
      if (added >= 0) {
        ungrant(fileSystem, foundIn(entries.slice(added)));
        if (listing.isEmpty()) throw new FsError("EINVAL", `no entry fits in ${request.size} bytes`);
        break;
      }
      const last = entries.at(-1);
      if (last === undefined || listing.room() === 0) break;
      cookie = last.cookie;
    }
  } catch (error) {
    ungrant(fileSystem, listing.finish().granted);
    throw error;
  }
  return listing.finish();
}

function foundIn(entries: readonly { name: string; found?: Found }[]): Found[] {
  return entries.flatMap(({ name, found }) => (found === undefined || isDots(name) ? [] : [found]));
}

export function fsyncdir({ fileSystem, caller }: Call, { fh }: In<typeof structs.FSYNC_IN>): Promise<void> {
  return fileSystem.fsyncdir(caller, fh);
}

export function releasedir({ fileSystem }: Call, { fh }: In<typeof structs.RELEASE_IN>): Promise<void> {
  return fileSystem.releasedir(fh);
}

export function setxattr({ fileSystem, caller, nodeid }: Call, request: SetxattrRequest): Promise<void> {
  const { name, value, flags } = request;
  if ((flags & ~(XATTR_CREATE | XATTR_REPLACE)) !== 0)
    throw new FsError("EINVAL", `setxattr flags ${flags}: XATTR_CREATE (1) or XATTR_REPLACE (2) expected`);
  return fileSystem.setxattr(caller, nodeid, name, value, {
    create: (flags & XATTR_CREATE) !== 0,
    replace: (flags & XATTR_REPLACE) !== 0,
  });
}

export async function getxattr(call: Call, request: { name: string; size: number }): Promise<XattrReply> {
  const { fileSystem, caller, nodeid } = call;
  return sized(await fileSystem.getxattr(caller, nodeid, request.name), request.size);
}

export async function listxattr(call: Call, { size }: { size: number }): Promise<XattrReply> {
  const { fileSystem, caller, nodeid } = call;
  const names = await fileSystem.listxattr(caller, nodeid);
  return sized(Buffer.from(names.map((name) => `${name}\0`).join("")), size);
}

function sized(value: Uint8Array, size: number): XattrReply {
  if (size === 0) return { size: value.length };
  if (value.length > size) throw new FsError("ERANGE", `${value.length} bytes do not fit in ${size}`);
  return { value };
}

export function removexattr({ fileSystem, caller, nodeid }: Call, { name }: NameRequest): Promise<void> {
  return fileSystem.removexattr(caller, nodeid, name);
}

/** The answers to requests that an earlier daemon carried out before it died. */
export const again = {
  nothing: async () => {},
  entry: (_call: Call, _request: unknown, done: Done): Promise<Found> => done.found(),
  attributes: ({ fileSystem, caller, nodeid }: Call): Promise<Attributed> => fileSystem.getattr(caller, nodeid),
  opendir: async (call: Call, _request: unknown, { opened }: Done): Promise<Opened> => opened ?? opendir(call),

  async open(call: Call, request: In<typeof structs.OPEN_IN>, { opened }: Done): Promise<Opened> {
    return opened === undefined ? open(call, request) : finishOpen(call, request, opened);
  },

  /** The file exists already, and a program may have written to it: it must not be truncated again. */
  async create(call: Call, request: In<typeof structs.CREATE_IN>, done: Done): Promise<Found & Opened> {
    const flags = { ...openFlags(request.flags), truncate: false, exclusive: false };
    return finishCreate(call, request, await done.openMade(call.caller, flags));
  },
};

/** Takes back the lookup counts of a reply that the kernel never got. */
export function ungrant(fileSystem: FileSystem, founds: readonly (Found | NegativeEntry)[]): void {
  const counted = founds.flatMap(({ kernelNodeId }) =>
    kernelNodeId === undefined ? [] : [{ kernelNodeId, count: 1 }],
  );
  if (counted.length > 0) fileSystem.forget(counted);
}

/**
 * Throws an FsError with `code` for an offset or size beyond 2^53: it was rounded when it was read and must not be
 * used.
 */
function representable(value: number, code: FsErrorCode): number {
  if (!Number.isSafeInteger(value)) throw new FsError(code, `${value} is over 2^53`);
  return value;
}
