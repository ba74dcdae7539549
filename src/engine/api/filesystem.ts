/**
 * The file system as the kernel side sees it: the operations of the FUSE protocol, in terms of names, numbers and
 * bytes. `fuse/` calls them and decides nothing; `engine/ops/file-system.ts` binds them to the flows. Every operation
 * rejects with an `FsError`; any other error is a bug and is answered EIO.
 *
 * The comments name the errors that an operation itself decides. Besides them, any operation may reject with:
 * - ESTALE: the kernel node id is not known any more, or is superseded and takes no new opens; EBADF: no such handle;
 * - EINTR: the caller was interrupted; ENOTDIR: a parent is no folder;
 * - EINVAL, ENAMETOOLONG: the gateway cannot hold a new name; ENFILE: the daemon has too many files open;
 * - EIO: the gateway or the disk failed; EACCES: the gateway refused the read;
 * - of changes, EROFS: the mount is read-only; ENOSPC: the disk is full; EDQUOT: the workspace is full;
 * - of calls that need a folder's names, EFBIG: the folder has more names than host/list-limit.ts takes;
 * - below the history folder, EACCES: the caller is neither root nor the mount's owner; EOPNOTSUPP: the gateway keeps no
 *   history; ENODATA: the gateway no longer keeps the content of this version.
 */
import type { Brand } from "../../lib/brand.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { InodeKind } from "../../metadata/inodes.ts";
import type { BackingId } from "./passthrough.ts";

/** The field `kernelNodeId` holds the kernel node id. */
export { type After, type EntryId, type KernelNodeId, kernelNodeId } from "../../metadata/ids.ts";
/** An open file or folder (FUSE: `fh`). A number is never used again on the same connection. */
export type HandleId = number & Brand<"HandleId">;

export const handleId = (id: number): HandleId => id as HandleId;

export type FileKind = InodeKind;

/** Attributes as stat(2) shows them. */
export interface Stat {
  readonly inode: InodeId;
  readonly kind: FileKind;
  /** Permission bits, 07777. */
  readonly mode: number;
  readonly links: number;
  readonly uid: number;
  readonly gid: number;
  readonly rdev: number;
  readonly size: number;
  /** In units of 512 bytes. */
  readonly blocks: number;
  readonly atime: Time;
  readonly mtime: Time;
  readonly ctime: Time;
  readonly btime: Time;
}

/** An answer with attributes. The kernel may trust them for `validMs` milliseconds. */
export interface Attributed {
  readonly stat: Stat;
  readonly validMs: number;
}

/** A name that was found or made. The kernel's lookup count of the kernel node id goes up by one. */
export interface Found extends Attributed {
  readonly kernelNodeId: KernelNodeId;
  readonly entryValidMs: number;
}

/** A negative entry: there is no such name, and the kernel may remember that for `entryValidMs` milliseconds. */
export interface NegativeEntry {
  readonly kernelNodeId: undefined;
  readonly entryValidMs: number;
}

/** The flags of open(2). */
export interface OpenFlags {
  readonly read: boolean;
  readonly write: boolean;
  readonly append: boolean;
  readonly truncate: boolean;
  readonly exclusive: boolean;
}

export interface Opened {
  readonly handle: HandleId;
  /** The kernel may keep its pages of this file; of a folder, its listing. */
  readonly keepCache: boolean;
  /** Nothing can be written through this handle, so the kernel need not send FLUSH at close(2). */
  readonly noFlush?: boolean;
  /** Reads and writes of this handle bypass the kernel's pages. Other handles of the file are not affected. */
  readonly direct?: boolean;
  /** Backing id: the kernel reads, writes and maps the file by itself; see passthrough.ts. Absent: no passthrough. */
  readonly backing?: BackingId;
}

/** Only the attributes that are present change. "now" is the time by the clock that stamps files. Sizes in bytes. */
export interface SetAttributes {
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly size?: number;
  readonly atime?: Time | "now";
  readonly mtime?: Time | "now";
  /** Clears the set-user-id and set-group-id bits, as a write by an ordinary user does. */
  readonly killPrivileges?: boolean;
  readonly handle?: HandleId;
}

export interface FolderEntry {
  readonly name: string;
  readonly inode: InodeId;
  readonly kind: FileKind;
  /**
   * The place at which the listing goes on after this entry: greater than 0, and the same as long as the entry lives.
   */
  readonly cookie: number;
  /** Present when attributes were asked for. */
  readonly found?: Found;
}

/** The answer to statfs(2). Counts of blocks are in units of `blockSize` bytes. */
export interface SpaceInfo {
  readonly blockSize: number;
  readonly blocks: number;
  readonly free: number;
  readonly available: number;
  readonly files: number;
  readonly filesFree: number;
  readonly nameLength: number;
}

/**
 * Identifies a request that waits for its answer: the kernel's number of it, and its place in the request log, which no
 * other waiting request has.
 */
interface Mark {
  readonly id: number;
  readonly place: number;
}

/** The effect of a request that an earlier daemon carried out and did not answer before it died. */
export interface Done {
  /** The inode that the request made, found or changed. Its lookup count in the kernel goes up by one. EIO: none. */
  found(): Promise<Found>;
  /** The handle that the request opened; undefined: none was opened. */
  readonly opened: Opened | undefined;
  /**
   * For CREATE: inode and handle. If the earlier daemon made the file and did not open it, it is opened now. If that
   * fails, the file is removed again, unless a program has changed it since. Rejects as `open` does.
   */
  openMade(caller: Caller, flags: OpenFlags): Promise<Found & Opened>;
}

/** The process that asks, and the signal by which it gives up its request. */
export interface Caller {
  /** The change is written to the request log under this mark. Absent: the request is never resent. */
  readonly mark?: Mark | undefined;
  readonly uid: number;
  readonly gid: number;
  /** Thread id of the caller. */
  readonly pid: number;
  /** Aborted when the caller is interrupted or the deadline of the operation has passed. */
  readonly signal: AbortSignal;
  /**
   * For a READ: answers it at once with the bytes of an open local file. `offset` and `size` in bytes. True: the
   * request is answered, and the result of the call is not sent. False: nothing has happened.
   */
  readonly answerFrom?: ((descriptor: number, offset: number, size: number) => boolean) | undefined;
}

/** A name in a folder, by the folder's kernel node id. */
export interface EntryName {
  readonly parent: KernelNodeId;
  readonly name: string;
}

export interface FileSystem {
  /** For a resent request, by its number: its effect at an earlier daemon. Undefined: it had none. */
  done(request: number): Done | undefined;
  /**
   * Counts invalidations. If the number has grown since a request came, the answer may be older than an invalidation
   * that the kernel has had meanwhile, so the kernel must not remember it.
   */
  readonly changes: number;
  /** A change was carried out after its caller was told that it failed, so the kernel's caches may be wrong. */
  unheard(): void;
  /**
   * A request took this many milliseconds. `mayAsk`: it may have waited for the gateway. The foreground throttle slows
   * write-back by that.
   */
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
  /**
   * Resolves to a NegativeEntry, or rejects with ENOENT, when there is no such name. With ENOENT the kernel must not
   * remember that. ENOTDIR: the parent is no folder.
   */
  lookup(caller: Caller, parent: KernelNodeId, name: string): Promise<Found | NegativeEntry>;
  /** The kernel has forgotten these kernel node ids. Never fails, never waits. */
  forget(kernelNodeIds: readonly { kernelNodeId: KernelNodeId; count: number }[]): void;
  /** Answers for superseded kernel node ids and orphans, too. */
  getattr(caller: Caller, kernelNodeId: KernelNodeId, handle?: HandleId): Promise<Attributed>;
  /** EISDIR: the size of a folder. EINVAL: the size of a link or special file. EFBIG: the disk holds no such size. */
  setattr(caller: Caller, kernelNodeId: KernelNodeId, change: SetAttributes): Promise<Attributed>;
  /**
   * EROFS: `mask` (as in access(2)) asks for writing, and the mount is read-only. EACCES: in the history folder, a file
   * that is not executable. Elsewhere the kernel checks permissions.
   */
  access(caller: Caller, kernelNodeId: KernelNodeId, mask: number): Promise<void>;
  /** The room of the disk, or of the workspace if that has a quota. Rejects as fromDisk says. */
  statfs(caller: Caller): Promise<SpaceInfo>;

  /** EINVAL: not a symlink. */
  readlink(caller: Caller, kernelNodeId: KernelNodeId): Promise<string>;
  /**
   * EEXIST. ENOENT: the target is empty, or the parent was removed. ENAMETOOLONG: the target has more than 4095 bytes.
   * EPERM: the gateway keeps no attributes.
   */
  symlink(caller: Caller, parent: KernelNodeId, name: string, target: string): Promise<Found>;
  /**
   * EEXIST. ENOENT: the parent was removed. EINVAL: `kind` is a folder or symlink. EPERM: `kind` is a special file, and
   * the gateway keeps no attributes.
   */
  mknod(caller: Caller, parent: KernelNodeId, name: string, kind: FileKind, mode: number, rdev: number): Promise<Found>;
  /** EEXIST. ENOENT: the parent was removed. */
  mkdir(caller: Caller, parent: KernelNodeId, name: string, mode: number): Promise<Found>;
  /**
   * EEXIST. ENOENT: the file or the parent was removed. EMLINK: the file has 65,000 names. EPERM: it is a folder, or
   * the gateway has no attributes, no hashes, or only heads.
   */
  link(caller: Caller, kernelNodeId: KernelNodeId, parent: KernelNodeId, name: string): Promise<Found>;
  /** ENOENT. EISDIR: a folder. EACCES: the token may not delete. */
  unlink(caller: Caller, parent: KernelNodeId, name: string): Promise<void>;
  /** ENOENT. ENOTDIR: no folder. ENOTEMPTY. EACCES: the token may not delete. */
  rmdir(caller: Caller, parent: KernelNodeId, name: string): Promise<void>;
  /**
   * ENOENT: the source, the target of an exchange, or the target's folder is gone. EEXIST: the target exists, with
   * `noReplace`. EISDIR: a file would replace a folder. ENOTDIR: a folder would replace a file. ENOTEMPTY. EINVAL: a
   * folder would move into itself. EACCES: the target would be replaced, and the token may not delete. EBUSY: newer
   * remote versions came faster than they could be fetched.
   */
  rename(
    caller: Caller,
    from: EntryName,
    to: EntryName,
    flags: { noReplace: boolean; exchange: boolean },
  ): Promise<void>;

  /**
   * Waits for the local disk only: bytes are fetched when they are read. Where the gateway shows only heads, an open
   * for writing fetches the whole file. EISDIR: a folder. ELOOP: a symlink. ENXIO: a special file.
   */
  open(caller: Caller, kernelNodeId: KernelNodeId, flags: OpenFlags): Promise<Opened>;
  /**
   * Makes a file and opens it. A file that exists is opened, or with `flags.exclusive` the call fails with EEXIST.
   * ENOENT: the parent was removed. Else as `open`.
   */
  create(caller: Caller, parent: KernelNodeId, name: string, mode: number, flags: OpenFlags): Promise<Found & Opened>;
  /**
   * Bytes at [offset, offset + size); fewer only at the end of the file. Empty when Caller.answerFrom has answered.
   * EIO: missing bytes cannot be fetched, or were found wrong. EACCES: the gateway refuses them. ENODATA: in the history
   * folder, the gateway no longer keeps them.
   */
  read(caller: Caller, handle: HandleId, offset: number, size: number): Promise<Uint8Array>;
  /**
   * Resolves to how many bytes of `data` were written; fewer than all when the disk became full. `data` must not change
   * before the promise settles. EFBIG: no file can have a byte there.
   */
  write(
    caller: Caller,
    handle: HandleId,
    offset: number,
    data: Uint8Array,
    options: { killPrivileges: boolean },
  ): Promise<number>;
  /**
   * close(2). With durability "remote" it waits until the gateway has the content. If the gateway does not get it:
   * EACCES, EDQUOT, EROFS or EIO, by the reason.
   */
  flush(caller: Caller, handle: HandleId): Promise<void>;
  /**
   * Makes bytes, rows and name durable. With durability "remote" it waits for the gateway, and fails as `flush` does.
   * `dataOnly` makes no difference.
   */
  fsync(caller: Caller, handle: HandleId, dataOnly: boolean): Promise<void>;
  /** Never fails: the program has gone on. */
  release(handle: HandleId): Promise<void>;
  /**
   * fallocate(2), with the mode bits of the kernel. Offset and length in bytes. EOPNOTSUPP: the mode is not supported.
   * EINVAL: the offset is negative, or the length not positive. EFBIG: no file can be that long.
   */
  allocate(caller: Caller, handle: HandleId, mode: number, offset: number, length: number): Promise<void>;
  /** Resolves to undefined when there is nothing of that kind at or after the offset (lseek(2): ENXIO). */
  seek(caller: Caller, handle: HandleId, kind: "data" | "hole", offset: number): Promise<number | undefined>;

  /** ENOTDIR: no folder. In the history folder also EOPNOTSUPP: the gateway keeps no history. */
  opendir(caller: Caller, kernelNodeId: KernelNodeId): Promise<Opened>;
  /**
   * At most `limit` entries after `cookie` (0: from the start), "." and ".." first. Empty: the end. EIO, EACCES: the
   * gateway could not list the folder. EFBIG: it has too many names.
   */
  readdir(
    caller: Caller,
    handle: HandleId,
    cookie: number,
    limit: number,
    withAttributes: boolean,
  ): Promise<FolderEntry[]>;
  /** Makes names durable. EIO: the state dir is gone. Else the disk's refusal of the sync, as fromDisk says. */
  fsyncdir(caller: Caller, handle: HandleId): Promise<void>;
  /** Never fails: the program has gone on. */
  releasedir(handle: HandleId): Promise<void>;

  /**
   * EOPNOTSUPP: the name does not begin with "user."; EINVAL: it is nothing else. EPERM: "user.wsfs." is read-only.
   * EEXIST: it is set, with `create`. ENODATA: it is not set, with `replace`. ERANGE: the value is too long. ENOSPC:
   * all attributes of the node together are too long.
   */
  setxattr(
    caller: Caller,
    kernelNodeId: KernelNodeId,
    name: string,
    value: Uint8Array,
    flags: { create: boolean; replace: boolean },
  ): Promise<void>;
  /** ENODATA: it is not set. EOPNOTSUPP, EINVAL: as of setxattr. */
  getxattr(caller: Caller, kernelNodeId: KernelNodeId, name: string): Promise<Uint8Array>;
  /** The names that getxattr can answer. ESTALE is its only error. */
  listxattr(caller: Caller, kernelNodeId: KernelNodeId): Promise<string[]>;
  /** ENODATA: it is not set. EOPNOTSUPP, EINVAL: as of setxattr. */
  removexattr(caller: Caller, kernelNodeId: KernelNodeId, name: string): Promise<void>;
}
