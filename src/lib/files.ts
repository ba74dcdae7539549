/**
 * Asynchronous file access as the engine sees it. `content/disk-files.ts` is the real one; the simulation has one in
 * memory. Paths are absolute. Every function rejects with a Node system error (`code` is an errno name such as
 * "ENOENT").
 */
import { compareTimes, type Time } from "./time.ts";

export interface FileStat {
  readonly size: number;
  /** Bytes allocated on the disk. */
  readonly allocated: number;
  readonly mtime: Time;
  readonly ctime: Time;
}

export function isSameStat(a: FileStat, b: FileStat): boolean {
  return a.size === b.size && compareTimes(a.mtime, b.mtime) === 0 && compareTimes(a.ctime, b.ctime) === 0;
}

/** "r": must exist, read only. "r+": must exist. "w+": made if missing, never truncated. "wx+": must not exist. */
export type OpenMode = "r" | "r+" | "w+" | "wx+";

export interface OpenFile {
  /** The kernel's descriptor of the file, until it is closed. Absent: it has none. */
  readonly descriptor?: number;
  /**
   * Reads into `buffer` at [offset, offset+length). Returns the number of bytes, which is below `length` only at the
   * end of the file.
   */
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<number>;
  /** Writes the whole buffer at `position`. When only its beginning fitted, the error says how much (bytesWritten). */
  write(buffer: Uint8Array, position: number): Promise<void>;
  /**
   * Like `write`, but synchronous. False: it would take long, or it failed and may have written a part: call `write`.
   * Absent: not possible.
   */
  writeNow?(buffer: Uint8Array, position: number): boolean;
  truncate(size: number): Promise<void>;
  stat(): Promise<FileStat>;
  setTimes(mtime: Time): Promise<void>;
  /** fdatasync: bytes and size are durable when it resolves. After an EIO it fails for good. */
  sync(): Promise<void>;
  /**
   * The first position >= offset that has data (or a hole). Undefined when there is none. A hole always ends the file.
   */
  seek(kind: "data" | "hole", offset: number): Promise<number | undefined>;
  /** fallocate(2). `mode` has the kernel's bits (KEEP_SIZE 1, PUNCH_HOLE 2, ZERO_RANGE 16). */
  allocate(mode: number, offset: number, length: number): Promise<void>;
  /** True if nothing else has the file open or mapped for writing. Absent: nothing else can. */
  isOnlyWriter?(): Promise<boolean>;
  /** Waits for the calls under way. Later calls reject with EBADF. Closing again does nothing. */
  close(): Promise<void>;
}

export interface FileHash {
  /** SHA-256, lower-case hex. */
  readonly hash: string;
  /** The number of hashed bytes. */
  readonly size: number;
}

/** The SHA-256 of a file, computed while the bytes of the file arrive. */
export interface RunningHash {
  /** All bytes before `end` are in the file, and none of them changes any more. Returns at once. */
  reach(end: number): void;
  /** The whole file is there. Resolves and rejects as `Files.hash` does. Nothing is called after it. */
  finish(signal?: AbortSignal): Promise<FileHash>;
  /** The hash is not needed any more. Nothing is called after it. */
  cancel(): void;
}

export interface Files {
  /**
   * The timestamp that a file would get if it were changed now. Stamps that the disk does not make itself are made with
   * it: such a stamp is never before an earlier stamp nor after a later one, unless the machine's clock is set back.
   */
  currentTime(): Time;
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  stat(path: string): Promise<FileStat>;
  /** Replaces the file at `to`. */
  rename(from: string, to: string): Promise<void>;
  /** No error when the file is missing. */
  remove(path: string): Promise<void>;
  /** Makes the folder together with missing ones above it, owner-only. No error when it exists. */
  makeFolder(path: string): Promise<void>;
  /**
   * A hint: folders made in it need not lie near each other on the disk, because they are not read one after the other.
   * Never rejects.
   */
  spreadFolders?(path: string): Promise<void>;
  /** The names in a folder, in any order. */
  list(path: string): Promise<string[]>;
  /** Fsync of a folder: created, renamed or removed names are durable. */
  syncFolder(path: string): Promise<void>;
  /** Makes everything on the disk below `path` durable: bytes and names. */
  syncDisk(path: string): Promise<void>;
  /**
   * An independent copy: a reflink if the disk can do that, otherwise the bytes (holes stay holes). EEXIST when `to`
   * exists.
   */
  clone(from: string, to: string): Promise<void>;
  /**
   * SHA-256 of the whole file, lower-case hex, with its size. A worker hashes large files. When aborted it rejects with
   * the signal's reason.
   */
  hash(path: string, signal?: AbortSignal): Promise<FileHash>;
  /** Begins to hash a file that exists and whose bytes arrive from its beginning on. */
  beginHash(path: string): RunningHash;
  /** Size and free space of the disk below `path`, in bytes. */
  space(path: string): Promise<{ total: number; free: number; available: number }>;
}
