/**
 * What the kernel side may ask of a file system: the operations of the FUSE protocol in terms of
 * names, numbers and bytes. `fuse/` calls it and decides nothing; `engine/ops/file-system.ts` binds the flows
 * of this folder to it. Every operation rejects with an `FsError`; anything else is a bug and is
 * answered EIO.
 */
import type { Brand } from "../../lib/brand.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { InodeKind } from "../../metadata/inodes.ts";

/** What the kernel calls a node id is a lineage. */
export { type After, type EntryId, type KernelNodeId, kernelNodeId } from "../../metadata/ids.ts";
/** An open file or folder. Never reused on one connection. */
export type HandleId = number & Brand<"HandleId">;

export const handleId = (id: number): HandleId => id as HandleId;

export type FileKind = InodeKind;

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

/** An answer with attributes; the kernel may keep them for `validMs`. */
export interface Attributed {
  readonly stat: Stat;
  readonly validMs: number;
}

/** A name that was found or made. The kernel's count of the lineage goes up by one. */
export interface Found extends Attributed {
  readonly lineage: KernelNodeId;
  readonly entryValidMs: number;
}

/** There is no such name, and the kernel may remember that. */
export interface NegativeEntry {
  readonly lineage: undefined;
  readonly entryValidMs: number;
}

export interface OpenFlags {
  readonly read: boolean;
  readonly write: boolean;
  readonly append: boolean;
  readonly truncate: boolean;
  readonly exclusive: boolean;
}

export interface Opened {
  readonly handle: HandleId;
  /** The kernel may keep the pages it has of this inode; of a folder, its listing. */
  readonly keepCache: boolean;
  /** Nothing can be written through it: its close(2) need not be told by flush. */
  readonly noFlush?: boolean;
  /** What is read and written goes past the kernel's pages: whoever else has the file open has it as he had. */
  readonly direct?: boolean;
  /** The kernel reads, writes and maps the file with this id itself, and asks for the rest; see passthrough.ts. */
  readonly backing?: number;
}

/** Only what is present changes. "now" is the server's clock. */
export interface SetAttributes {
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly size?: number;
  readonly atime?: Time | "now";
  readonly mtime?: Time | "now";
  /** Clear set-user-id and set-group-id as a write by an ordinary user does. */
  readonly killPrivileges?: boolean;
  readonly handle?: HandleId;
}

export interface FolderEntry {
  readonly name: string;
  readonly inode: InodeId;
  readonly kind: FileKind;
  /** Where the listing goes on after this entry; > 0, stable for as long as the entry lives. */
  readonly cookie: number;
  /** Present when asked for with attributes and it could be had without waiting. */
  readonly found?: Found;
}

export interface SpaceInfo {
  readonly blockSize: number;
  readonly blocks: number;
  readonly free: number;
  readonly available: number;
  readonly files: number;
  readonly filesFree: number;
  readonly nameLength: number;
}

/** What stands for a request that waits for its answer: the kernel's number of it, and a place no other has meanwhile. */
export interface Mark {
  readonly id: number;
  readonly place: number;
}

/** What a daemon that died did for a request, and could not tell any more. */
export interface Done {
  /** What it made, found or changed. Counts as told to the kernel. */
  found(): Promise<Found>;
  /** The handle it made, if it came to that. */
  readonly opened: Opened | undefined;
  /** Both, of a file it made: opened now, if it did not come to that. Where that fails there is no such file. */
  openMade(caller: Caller, flags: OpenFlags): Promise<Found & Opened>;
}

/** Who asks, and until when the answer is wanted. */
export interface Caller {
  /** A change for it is written down under this; absent: nobody will ask again. */
  readonly mark?: Mark | undefined;
  readonly uid: number;
  readonly gid: number;
  /** The calling thread. */
  readonly pid: number;
  /** Aborted when the caller was interrupted or the operation's deadline passed. */
  readonly signal: AbortSignal;
}

export interface FileSystem {
  /** Of a request that comes again, because its first daemon died: undefined if nothing was done. */
  done(request: number): Done | undefined;
  /**
   * How often something has changed that the kernel did not ask for. Has it grown since a request came,
   * the answer may be older than what the kernel was told meanwhile: the kernel must not keep it.
   */
  readonly changes: number;
  /** A mutation was done after its caller had been told that it failed: what the kernel holds may be wrong. */
  unheard(): void;
  /** A request was at hand for so long, `mayAsk`: maybe for the gateway's sake. What else this thread does makes way for many. */
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
  lookup(caller: Caller, parent: KernelNodeId, name: string): Promise<Found | NegativeEntry>;
  /** The kernel no longer knows these lineages. Never fails, never waits. */
  forget(lineages: readonly { lineage: KernelNodeId; count: number }[]): void;
  getattr(caller: Caller, lineage: KernelNodeId, handle?: HandleId): Promise<Attributed>;
  setattr(caller: Caller, lineage: KernelNodeId, change: SetAttributes): Promise<Attributed>;
  access(caller: Caller, lineage: KernelNodeId, mask: number): Promise<void>;
  statfs(caller: Caller): Promise<SpaceInfo>;

  readlink(caller: Caller, lineage: KernelNodeId): Promise<string>;
  symlink(caller: Caller, parent: KernelNodeId, name: string, target: string): Promise<Found>;
  mknod(caller: Caller, parent: KernelNodeId, name: string, kind: FileKind, mode: number, rdev: number): Promise<Found>;
  mkdir(caller: Caller, parent: KernelNodeId, name: string, mode: number): Promise<Found>;
  link(caller: Caller, lineage: KernelNodeId, parent: KernelNodeId, name: string): Promise<Found>;
  unlink(caller: Caller, parent: KernelNodeId, name: string): Promise<void>;
  rmdir(caller: Caller, parent: KernelNodeId, name: string): Promise<void>;
  rename(
    caller: Caller,
    from: { parent: KernelNodeId; name: string },
    to: { parent: KernelNodeId; name: string },
    flags: { noReplace: boolean; exchange: boolean },
  ): Promise<void>;

  open(caller: Caller, lineage: KernelNodeId, flags: OpenFlags): Promise<Opened>;
  create(caller: Caller, parent: KernelNodeId, name: string, mode: number, flags: OpenFlags): Promise<Found & Opened>;
  /** Bytes at [offset, offset+size); shorter only at the end of the file. */
  read(caller: Caller, handle: HandleId, offset: number, size: number): Promise<Uint8Array>;
  /** How many bytes of `data` were written, less than all where the disk became full; it stays valid until the promise settles. */
  write(
    caller: Caller,
    handle: HandleId,
    offset: number,
    data: Uint8Array,
    options: { killPrivileges: boolean },
  ): Promise<number>;
  flush(caller: Caller, handle: HandleId): Promise<void>;
  fsync(caller: Caller, handle: HandleId, dataOnly: boolean): Promise<void>;
  release(handle: HandleId): Promise<void>;
  allocate(caller: Caller, handle: HandleId, mode: number, offset: number, length: number): Promise<void>;
  /** Undefined: nothing of that kind at or after the offset (ENXIO). */
  seek(caller: Caller, handle: HandleId, kind: "data" | "hole", offset: number): Promise<number | undefined>;

  opendir(caller: Caller, lineage: KernelNodeId): Promise<Opened>;
  /** Entries after `cookie` (0: from the start), "." and ".." first, at most `limit`. Empty: the end. */
  readdir(
    caller: Caller,
    handle: HandleId,
    cookie: number,
    limit: number,
    withAttributes: boolean,
  ): Promise<FolderEntry[]>;
  fsyncdir(caller: Caller, handle: HandleId): Promise<void>;
  releasedir(handle: HandleId): Promise<void>;

  setxattr(
    caller: Caller,
    lineage: KernelNodeId,
    name: string,
    value: Uint8Array,
    flags: { create: boolean; replace: boolean },
  ): Promise<void>;
  getxattr(caller: Caller, lineage: KernelNodeId, name: string): Promise<Uint8Array>;
  listxattr(caller: Caller, lineage: KernelNodeId): Promise<string[]>;
  removexattr(caller: Caller, lineage: KernelNodeId, name: string): Promise<void>;
}
