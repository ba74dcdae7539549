/**
 * Every opcode of the protocol (7.45) in one table: its number, its name, its decoder, its handler and its encoder.
 * Only this file joins them.
 */
import type { Done, FileSystem, Found, NegativeEntry, Opened } from "../engine/api/index.ts";
import type { ErrorName } from "./errno.ts";
import type { Call } from "./handlers.ts";
import * as handlers from "./handlers.ts";
import type { Message } from "./message.ts";
import type { Parts } from "./replies.ts";
import * as replies from "./replies.ts";
import * as out from "./reply-structs.ts";
import * as structs from "./request-structs.ts";
import type { ForgetOne, WireVersion } from "./requests.ts";
import * as requests from "./requests.ts";

interface Row<Request, Reply> {
  readonly code: number;
  readonly name: string;
  decode(message: Message, version: WireVersion): Request;
  /** `isKept`: false if the kernel must not remember the answer. */
  encode(reply: Reply, isKept: boolean): Parts;
}

/**
 * An operation that the file system answers. It has methods, not properties, so that rows of all types fit in one
 * table.
 */
export interface Served<Request = unknown, Reply = unknown> extends Row<Request, Reply> {
  readonly kind: "served";
  /** No deadline: it waits only for the local disk, or its bytes must not be given up. */
  readonly local: boolean;
  /** The kernel sends it only after a check of permissions on its node, a folder. */
  readonly isPermitted: boolean;
  handle(call: Call, request: Request): Promise<Reply>;
  /**
   * Instead of `handle`, for a request that was carried out by a daemon that died before it could answer. Absent:
   * carrying it out again does no harm.
   */
  again?(call: Call, request: Request, done: Done): Promise<Reply>;
  /** Takes back the effects of an answer that the kernel did not get. */
  undo?(fileSystem: FileSystem, reply: Reply): void | Promise<void>;
}

/** An operation without an answer. */
interface Silent<Request = unknown> extends Row<Request, never> {
  readonly kind: "silent";
  handle(fileSystem: FileSystem, request: Request): void;
}

/** An operation that is not served: the kernel gets this error. After ENOSYS it never sends the operation again. */
interface Refused<Request = unknown, Reply = unknown> extends Row<Request, Reply> {
  readonly kind: "refused";
  readonly error: ErrorName;
}

/** An operation about the connection or about another request. `session.ts` answers it. */
export interface OfSession<Request = unknown, Reply = unknown> extends Row<Request, Reply> {
  readonly kind: "session";
}

export type Operation = Served | Silent | Refused | OfSession;

interface ServedOptions<Request, Reply> {
  local?: boolean;
  isPermitted?: boolean;
  again?: (call: Call, request: Request, done: Done) => Promise<Reply>;
  undo?: (fileSystem: FileSystem, reply: Reply) => void | Promise<void>;
}

function served<Request, Reply>(
  code: number,
  name: string,
  decode: (message: Message, version: WireVersion) => Request,
  handle: (call: Call, request: Request) => Promise<Reply>,
  encode: (reply: Reply, isKept: boolean) => Parts,
  { local = false, isPermitted = false, undo, again }: ServedOptions<Request, Reply> = {},
): Served<Request, Reply> {
  const row = { kind: "served", code, name, decode, handle, encode, local, isPermitted } as const;
  return { ...row, ...(undo && { undo }), ...(again && { again }) };
}

function silent<Request>(
  code: number,
  name: string,
  decode: (message: Message) => Request,
  handle: (fileSystem: FileSystem, request: Request) => void,
): Silent<Request> {
  return { kind: "silent", code, name, decode, handle, encode: replies.encodeNothing };
}

function refused<Request, Reply>(
  code: number,
  name: string,
  decode: (message: Message) => Request,
  error: ErrorName,
  encode: (reply: Reply, isKept: boolean) => Parts,
): Refused<Request, Reply> {
  return { kind: "refused", code, name, decode, error, encode };
}

function ofSession<Request, Reply>(
  code: number,
  name: string,
  decode: (message: Message) => Request,
  encode: (reply: Reply) => Parts,
): OfSession<Request, Reply> {
  return { kind: "session", code, name, decode, encode };
}

const { fixed, decodeNothing, decodeName, decodeLock } = requests;
const { encodeNothing, encodeEntry, encodeAttr, encodeData, encodeFixed } = replies;

const permitted = { isPermitted: true };
const forgetEntry = {
  ...permitted,
  undo: (fs: FileSystem, found: Found | NegativeEntry) => handlers.ungrant(fs, [found]),
};
const releaseHandle = { undo: (fs: FileSystem, opened: Opened) => fs.release(opened.handle) };
const releaseFolder = { undo: (fs: FileSystem, opened: Opened) => fs.releasedir(opened.handle) };
const local = { local: true };
const { again } = handlers;
const makesEntry = { ...forgetEntry, again: again.entry };
const changes = { again: again.nothing };

function undoCreate(fs: FileSystem, created: Found & Opened): Promise<void> {
  handlers.ungrant(fs, [created]);
  return fs.release(created.handle);
}

function decodeForget(message: Message): ForgetOne {
  return { nodeid: message.nodeid, nlookup: fixed(structs.FORGET_IN)(message).nlookup };
}

export const INIT_ROW = ofSession(26, "INIT", requests.decodeInit, encodeFixed(out.INIT_OUT));
export const INTERRUPT_ROW = ofSession(36, "INTERRUPT", fixed(structs.INTERRUPT_IN), encodeNothing);
export const DESTROY_ROW = ofSession(38, "DESTROY", decodeNothing, encodeNothing);

// biome-ignore format: a table is read by its columns
const ROWS: readonly Operation[] = [
  served(1, "LOOKUP", decodeName, handlers.lookup, encodeEntry, forgetEntry),
  silent(2, "FORGET", decodeForget, (fs, one) => handlers.forget(fs, [one])),
  served(3, "GETATTR", fixed(structs.GETATTR_IN), handlers.getattr, encodeAttr),
  served(4, "SETATTR", fixed(structs.SETATTR_IN), handlers.setattr, encodeAttr, { again: again.attributes }),
  served(5, "READLINK", decodeNothing, handlers.readlink, replies.encodeText),
  served(6, "SYMLINK", requests.decodeSymlink, handlers.symlink, encodeEntry, makesEntry),
  served(8, "MKNOD", requests.decodeMknod, handlers.mknod, encodeEntry, makesEntry),
  served(9, "MKDIR", requests.decodeMkdir, handlers.mkdir, encodeEntry, makesEntry),
  served(10, "UNLINK", decodeName, handlers.unlink, encodeNothing, changes),
  served(11, "RMDIR", decodeName, handlers.rmdir, encodeNothing, changes),
  served(12, "RENAME", requests.decodeRename, handlers.rename, encodeNothing, changes),
  served(13, "LINK", requests.decodeLink, handlers.link, encodeEntry, makesEntry),
  served(14, "OPEN", fixed(structs.OPEN_IN), handlers.open, replies.encodeOpen, { ...releaseHandle, again: again.open }),
  served(15, "READ", fixed(structs.READ_IN), handlers.read, encodeData),
  served(16, "WRITE", requests.decodeWrite, handlers.write, replies.encodeWritten, local),
  served(17, "STATFS", decodeNothing, handlers.statfs, replies.encodeSpace),
  served(18, "RELEASE", fixed(structs.RELEASE_IN), handlers.release, encodeNothing, local),
  served(20, "FSYNC", fixed(structs.FSYNC_IN), handlers.fsync, encodeNothing, local),
  served(21, "SETXATTR", requests.decodeSetxattr, handlers.setxattr, encodeNothing, changes),
  served(22, "GETXATTR", requests.decodeGetxattr, handlers.getxattr, replies.encodeXattr),
  served(23, "LISTXATTR", fixed(structs.GETXATTR_IN), handlers.listxattr, replies.encodeXattr),
  served(24, "REMOVEXATTR", requests.decodeXattrName, handlers.removexattr, encodeNothing, changes),
  served(25, "FLUSH", fixed(structs.FLUSH_IN), handlers.flush, encodeNothing, local),
  INIT_ROW,
  served(27, "OPENDIR", fixed(structs.OPEN_IN), handlers.opendir, replies.encodeOpenFolder, { ...permitted, ...releaseFolder, again: again.opendir }),
  served(28, "READDIR", fixed(structs.READ_IN), handlers.readdir, replies.encodeListing),
  served(29, "RELEASEDIR", fixed(structs.RELEASE_IN), handlers.releasedir, encodeNothing, local),
  served(30, "FSYNCDIR", fixed(structs.FSYNC_IN), handlers.fsyncdir, encodeNothing, local),
  // Locks are not asked for at INIT: the kernel keeps them itself.
  refused(31, "GETLK", decodeLock, "ENOSYS", replies.encodeLock),
  refused(32, "SETLK", decodeLock, "ENOSYS", encodeNothing),
  refused(33, "SETLKW", decodeLock, "ENOSYS", encodeNothing),
  served(34, "ACCESS", fixed(structs.ACCESS_IN), handlers.access, encodeNothing),
  served(35, "CREATE", requests.decodeCreate, handlers.create, replies.encodeCreate, { ...permitted, undo: undoCreate, again: again.create }),
  INTERRUPT_ROW,
  refused(37, "BMAP", fixed(structs.BMAP_IN), "ENOSYS", encodeFixed(out.BMAP_OUT)),
  DESTROY_ROW,
  refused(39, "IOCTL", requests.decodeIoctl, "ENOTTY", replies.encodeIoctl),
  refused(40, "POLL", fixed(structs.POLL_IN), "ENOSYS", encodeFixed(out.POLL_OUT)),
  // Comes only after a RETRIEVE notification, which is never sent.
  silent(41, "NOTIFY_REPLY", requests.decodeNotifyReply, () => {}),
  silent(42, "BATCH_FORGET", requests.decodeBatchForget, (fs, { forgets }) => handlers.forget(fs, forgets)),
  served(43, "FALLOCATE", fixed(structs.FALLOCATE_IN), handlers.allocate, encodeNothing, local),
  served(44, "READDIRPLUS", fixed(structs.READ_IN), handlers.readdirplus, replies.encodeListing, {
    undo: (fs, listing) => handlers.ungrant(fs, listing.granted),
  }),
  served(45, "RENAME2", requests.decodeRename2, handlers.rename, encodeNothing, changes),
  served(46, "LSEEK", fixed(structs.LSEEK_IN), handlers.seek, replies.encodeOffset),
  // The kernel copies through its page cache instead.
  refused(47, "COPY_FILE_RANGE", fixed(structs.COPY_FILE_RANGE_IN), "ENOSYS", encodeFixed(out.WRITE_OUT)),
  refused(48, "SETUPMAPPING", fixed(structs.SETUPMAPPING_IN), "ENOSYS", encodeNothing),
  refused(49, "REMOVEMAPPING", requests.decodeRemoveMapping, "ENOSYS", encodeNothing),
  refused(50, "SYNCFS", decodeNothing, "ENOSYS", encodeNothing),
  refused(51, "TMPFILE", requests.decodeTmpfile, "ENOSYS", replies.encodeCreate),
  served(52, "STATX", fixed(structs.STATX_IN), handlers.getattr, replies.encodeStatxReply),
  refused(53, "COPY_FILE_RANGE_64", fixed(structs.COPY_FILE_RANGE_IN), "ENOSYS", encodeFixed(out.COPY_FILE_RANGE_OUT)),
];

export const OPERATIONS: ReadonlyMap<number, Operation> = new Map(ROWS.map((row) => [row.code, row]));

/** True for all opcodes but the four without a reply. It holds even if the rest of the message is unreadable. */
export function takesReply(opcode: number): boolean {
  const operation = OPERATIONS.get(opcode);
  return operation?.kind !== "silent" && operation !== INTERRUPT_ROW;
}
