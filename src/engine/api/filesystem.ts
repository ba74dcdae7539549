/**
 * The file system as the kernel side sees it: the operations of the FUSE protocol, in terms of names, numbers and
 * bytes. `fuse/` calls them and decides nothing; `engine/ops/file-system.ts` binds them to the flows. Every operation
 * rejects with an `FsError`; any other error is a bug and is answered EIO.
 *
 * The comments name the errors that an operation itself decides. Besides them, any operation may reject with:
 * - ESTALE: the kernel node id is not known any more, or is superseded and takes no new opens; EBADF: no such handle;
 * - EINTR: the caller was interrupted; EINVAL, ENAMETOOLONG: the gateway cannot hold a new name;
 * - EIO: the gateway or the disk failed; EACCES: the gateway refused the read;
 * - of changes, EROFS: the mount is read-only; ENOSPC: the disk is full; EDQUOT: the workspace is full.
 */
import type { Brand } from "../../lib/brand.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { InodeKind } from "../../metadata/inodes.ts";

/** The field `lineage` holds the kernel node id. */
export { type After, type EntryId, type KernelNodeId, kernelNodeId } from "../../metadata/ids.ts";
/** An open file or folder (FUSE: `fh`). Never reused on one connection. */
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
  readonly lineage: KernelNodeId;
  readonly entryValidMs: number;
}

/** There is no such name, and the kernel may remember that for `entryValidMs` milliseconds. */
export interface NegativeEntry {
  readonly lineage: undefined;
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
  /** Backing id: the kernel reads, writes and maps the file by itself, and asks us for the rest; see passthrough.ts. */
  readonly backing?: number;
}

/** Only what is present changes. "now" is the clock of the file system. Sizes in bytes. */
export interface SetAttributes {
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly size?: number;
  readonly atime?: Time | "now";
  readonly mtime?: Time | "now";
  /** Clear the set-user-id and set-group-id bits, as a write by an ordinary user does. */
  readonly killPrivileges?: boolean;
  readonly handle?: HandleId;
}

export interface FolderEntry {
  readonly name: string;
  readonly inode: InodeId;
  readonly kind: FileKind;
  /**
   * The place at which the listing goes on after this entry: greater than 0, and the same for as long as the entry
   * lives.
   */
  readonly cookie: number;
  /** Present when attributes were asked for and were at hand without waiting. */
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
 * Identifies a request that waits for its answer: the kernel's number of it, and a place that no other waiting request
 * has.
 */
export interface Mark {
  readonly id: number;
  readonly place: number;
}

/** The effect of a request that a daemon carried out and, since it died, did not answer. */
export interface Done {
  /** The inode that the request made, found or changed. The kernel's lookup count of it goes up by one. */
  found(): Promise<Found>;
  /** The handle that the request opened; undefined: none was opened. */
  readonly opened: Opened | undefined;
  /**
   * Of CREATE: inode and handle. A file that was made and not opened is opened now. If that fails, the file is removed
   * again, unless a program has changed it since.
   */
  openMade(caller: Caller, flags: OpenFlags): Promise<Found & Opened>;
}

/** The process that asks, and the signal that it no longer wants the answer. */
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
   * Of a READ: answers it at once with what an open local file has there. True: it is answered, and what the call resolves
   * to is not sent. False: it could not, and nothing has happened.
   */
  readonly answerFrom?: ((descriptor: number, offset: number, size: number) => boolean) | undefined;
}

export interface FileSystem {
  /** For a resent request, whose first daemon died: what was done. Undefined: nothing was done. */
  done(request: number): Done | undefined;
  /**
   * Counts changes that the kernel did not ask for. If it has grown since a request came, the answer may be older than
   * what the kernel was told meanwhile, so the kernel must not keep it.
   */
  readonly changes: number;
  /** A mutation was carried out after its caller was told that it failed, so the kernel's caches may be wrong. */
  unheard(): void;
  /**
   * A request was under way for so many milliseconds. `mayAsk`: the request may have waited for the gateway. After many
   * such requests the foreground throttle slows other work of this thread.
   */
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
  /**
   * ENOTDIR: the parent is no folder. ENOENT: no such name, and the kernel must not remember that; else NegativeEntry.
   */
  lookup(caller: Caller, parent: KernelNodeId, name: string): Promise<Found | NegativeEntry>;
  /** The kernel has forgotten these kernel node ids. Never fails, never waits. */
  forget(lineages: readonly { lineage: KernelNodeId; count: number }[]): void;
  /** Also for superseded kernel node ids and orphans. */
  getattr(caller: Caller, lineage: KernelNodeId, handle?: HandleId): Promise<Attributed>;
  /** EISDIR, EINVAL: the size of a folder, or of what is no file. EFBIG. */
  setattr(caller: Caller, lineage: KernelNodeId, change: SetAttributes): Promise<Attributed>;
  /** EROFS when the mask asks for writing and the mount is read-only. Permissions are checked by the kernel. */
  access(caller: Caller, lineage: KernelNodeId, mask: number): Promise<void>;
  statfs(caller: Caller): Promise<SpaceInfo>;

  /** EINVAL: not a symlink. */
  readlink(caller: Caller, lineage: KernelNodeId): Promise<string>;
  /** EEXIST, ENOENT (empty target, or the parent was removed), ENAMETOOLONG. EPERM: the gateway keeps no attributes. */
  symlink(caller: Caller, parent: KernelNodeId, name: string, target: string): Promise<Found>;
  /**
   * EEXIST, ENOENT: the parent was removed. EINVAL: a folder or symlink. EPERM: a special file, and the gateway keeps
   * no attributes.
   */
  mknod(caller: Caller, parent: KernelNodeId, name: string, kind: FileKind, mode: number, rdev: number): Promise<Found>;
  /** EEXIST, ENOENT: the parent was removed. */
  mkdir(caller: Caller, parent: KernelNodeId, name: string, mode: number): Promise<Found>;
  /** EEXIST, ENOENT, EMLINK: too many names. EPERM: a folder, or the gateway lacks what hard links need. */
  link(caller: Caller, lineage: KernelNodeId, parent: KernelNodeId, name: string): Promise<Found>;
  /** ENOENT, EISDIR. EACCES: the token may not delete. */
  unlink(caller: Caller, parent: KernelNodeId, name: string): Promise<void>;
  /** ENOENT, ENOTDIR, ENOTEMPTY. EACCES: the token may not delete. */
  rmdir(caller: Caller, parent: KernelNodeId, name: string): Promise<void>;
  /**
   * ENOENT, EEXIST (`noReplace`), EISDIR, ENOTDIR, ENOTEMPTY. EINVAL: a folder into itself. EACCES: the target exists,
   * and the token may not delete. EBUSY: newer remote versions came faster than they could be fetched.
   */
  rename(
    caller: Caller,
    from: { parent: KernelNodeId; name: string },
    to: { parent: KernelNodeId; name: string },
    flags: { noReplace: boolean; exchange: boolean },
  ): Promise<void>;

  /**
   * Waits for the local disk only, unless the gateway shows only heads. EISDIR, ELOOP: a symlink. ENXIO: a special
   * file.
   */
  open(caller: Caller, lineage: KernelNodeId, flags: OpenFlags): Promise<Opened>;
  /** Opens an existing file, unless `flags.exclusive` is set: then EEXIST. ENOENT: the parent was removed. */
  create(caller: Caller, parent: KernelNodeId, name: string, mode: number, flags: OpenFlags): Promise<Found & Opened>;
  /**
   * Bytes at [offset, offset + size); fewer only at the end of the file. EIO: bytes are missing and cannot be fetched,
   * or were found wrong.
   */
  read(caller: Caller, handle: HandleId, offset: number, size: number): Promise<Uint8Array>;
  /**
   * Resolves to how many bytes of `data` were written; fewer than all when the disk became full. `data` must not change
   * before the promise settles. EFBIG.
   */
  write(
    caller: Caller,
    handle: HandleId,
    offset: number,
    data: Uint8Array,
    options: { killPrivileges: boolean },
  ): Promise<number>;
  /**
   * close(2). With durability "remote" it waits until the gateway has the content, and rejects when the gateway refuses
   * it.
   */
  flush(caller: Caller, handle: HandleId): Promise<void>;
  /**
   * Bytes, rows and name survive power loss; with durability "remote" the gateway has the content too. `dataOnly`
   * changes nothing.
   */
  fsync(caller: Caller, handle: HandleId, dataOnly: boolean): Promise<void>;
  /** Never fails: the program has gone on. */
  release(handle: HandleId): Promise<void>;
  /** fallocate(2); `mode` as the kernel has it. Offset and length in bytes. EOPNOTSUPP: another mode. EINVAL, EFBIG. */
  allocate(caller: Caller, handle: HandleId, mode: number, offset: number, length: number): Promise<void>;
  /** Resolves to undefined when there is nothing of that kind at or after the offset (lseek(2): ENXIO). */
  seek(caller: Caller, handle: HandleId, kind: "data" | "hole", offset: number): Promise<number | undefined>;

  /** ENOTDIR. */
  opendir(caller: Caller, lineage: KernelNodeId): Promise<Opened>;
  /** At most `limit` entries after `cookie` (0: from the start), "." and ".." first. Empty: the end. */
  readdir(
    caller: Caller,
    handle: HandleId,
    cookie: number,
    limit: number,
    withAttributes: boolean,
  ): Promise<FolderEntry[]>;
  /** The names survive power loss. */
  fsyncdir(caller: Caller, handle: HandleId): Promise<void>;
  releasedir(handle: HandleId): Promise<void>;

  /**
   * Only of the space "user.": else EOPNOTSUPP. EPERM: "user.wsfs." is read-only. EEXIST (`create`), ENODATA
   * (`replace`). ERANGE: the value is too long. ENOSPC: all attributes together are too long.
   */
  setxattr(
    caller: Caller,
    lineage: KernelNodeId,
    name: string,
    value: Uint8Array,
    flags: { create: boolean; replace: boolean },
  ): Promise<void>;
  /** ENODATA, EOPNOTSUPP. */
  getxattr(caller: Caller, lineage: KernelNodeId, name: string): Promise<Uint8Array>;
  listxattr(caller: Caller, lineage: KernelNodeId): Promise<string[]>;
  /** ENODATA, EOPNOTSUPP. */
  removexattr(caller: Caller, lineage: KernelNodeId, name: string): Promise<void>;
}
