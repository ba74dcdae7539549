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

/**
 * "r": read only; "r" and "r+" fail with ENOENT if the file is missing. "w+": made if missing, never truncated. "wx+":
 * made; EEXIST if the file exists.
 */
export type OpenMode = "r" | "r+" | "w+" | "wx+";

export interface OpenFile {
  /** The kernel's descriptor of the file, until it is closed. Absent: it has none. */
  readonly descriptor?: number;
  /**
   * Reads into `buffer` at [offset, offset+length). Resolves to the number of bytes, which is below `length` only at
   * the end of the file.
   */
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<number>;
  /** Writes the whole buffer at `position`. When it fails, `bytesWritten(error)` is the number of bytes written. */
  write(buffer: Uint8Array, position: number): Promise<void>;
  /**
   * Like `write`, but synchronous. False: it may take long, or it failed and may have written a part; call `write`
   * then. Absent: there is no synchronous write.
   */
  writeNow?(buffer: Uint8Array, position: number): boolean;
  truncate(size: number): Promise<void>;
  stat(): Promise<FileStat>;
  setTimes(mtime: Time): Promise<void>;
  /** fdatasync: bytes and size are durable when it resolves. After an EIO, every later sync rejects too. */
  sync(): Promise<void>;
  /** The first position >= offset that has data (or a hole). Undefined: there is none. The end of a file is a hole. */
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
  /** Tells that all bytes before `end` are in the file, and that none of them changes any more. Returns at once. */
  reach(end: number): void;
  /** Tells that the whole file is there. Settles as `Files.hash` does. No method is called after it. */
  finish(signal?: AbortSignal): Promise<FileHash>;
  /** Tells that the hash is not needed any more. No method is called after it. */
  cancel(): void;
}

export interface Files {
  /**
   * The timestamp that a file would get if it were changed now. The engine makes its own timestamps with it. So they
   * are in order with those of the disk, unless the machine's clock is set back.
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
  /** A hint that the folders in this folder need not lie near each other on the disk. Never rejects. */
  spreadFolders?(path: string): Promise<void>;
  /** The names in a folder, in any order. */
  list(path: string): Promise<string[]>;
  /** fsync of a folder: names that were created, renamed or removed in it are durable when it resolves. */
  syncFolder(path: string): Promise<void>;
  /** Makes everything on the disk below `path` durable: bytes and names. */
  syncDisk(path: string): Promise<void>;
  /**
   * Makes an independent copy: a reflink if the disk can do that, otherwise a copy of the bytes (holes stay holes).
   * EEXIST: `to` exists.
   */
  clone(from: string, to: string): Promise<void>;
  /** Hashes the whole file. A worker hashes large files. Rejects with the signal's reason when it aborts. */
  hash(path: string, signal?: AbortSignal): Promise<FileHash>;
  /** Begins to hash an existing file whose bytes arrive in order. */
  beginHash(path: string): RunningHash;
  /** Size and free space of the disk below `path`, in bytes. */
  space(path: string): Promise<{ total: number; free: number; available: number }>;
}
