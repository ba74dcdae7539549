/**
 * Asynchronous file access as the engine sees it. `content/disk-files.ts` is the real one; the
 * simulation has one in memory. Paths are absolute. Every function rejects with a Node system
 * error (`code` is an errno name such as "ENOENT").
 */
import { compareTimes, type Time } from "./time.ts";

export interface FileStat {
  readonly size: number;
  /** Bytes allocated on disk. */
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
  /** The kernel's number of it, until close. Absent: it has none. */
  readonly descriptor?: number;
  /** Bytes read into buffer at [offset, offset+length); fewer than length only at the end of the file. */
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<number>;
  /** Writes the whole buffer at `position`. Where only its beginning fitted, the error says how much (bytesWritten). */
  write(buffer: Uint8Array, position: number): Promise<void>;
  truncate(size: number): Promise<void>;
  stat(): Promise<FileStat>;
  setTimes(mtime: Time): Promise<void>;
  /** fdatasync: bytes and size survive power loss once it resolves. After an EIO it fails for good. */
  sync(): Promise<void>;
  /** First position >= offset that holds data (or a hole); undefined when there is none. A hole always ends the file. */
  seek(kind: "data" | "hole", offset: number): Promise<number | undefined>;
  /** fallocate(2); mode is the kernel's bits (KEEP_SIZE 1, PUNCH_HOLE 2, ZERO_RANGE 16). */
  allocate(mode: number, offset: number, length: number): Promise<void>;
  /** Of a file open for writing: nobody else has it open, or mapped, for that. Absent: nobody can. */
  isOnlyWriter?(): Promise<boolean>;
  /** Waits for the calls under way; later ones reject with EBADF. Closing again does nothing. */
  close(): Promise<void>;
}

export interface Files {
  /**
   * The time that a file has which is changed now. Whatever is not stamped by the disk itself is stamped with it: it is
   * never before a stamp made earlier, nor after one made later, unless somebody sets the machine's clock back.
   */
  currentTime(): Time;
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  stat(path: string): Promise<FileStat>;
  /** Replaces what is at `to`. */
  rename(from: string, to: string): Promise<void>;
  /** No error when it is not there. */
  remove(path: string): Promise<void>;
  /** With the folders above it that are missing. No error when it is there. Owner-only. */
  makeFolder(path: string): Promise<void>;
  /** A hint: the folders made in it need not lie near each other on the disk, for nobody reads them one after the other. Never rejects. */
  spreadFolders?(path: string): Promise<void>;
  /** The names in a folder, in any order. */
  list(path: string): Promise<string[]>;
  /** Fsync of a folder: names made, renamed or removed in it survive power loss. */
  syncFolder(path: string): Promise<void>;
  /** Everything on the disk below `path` survives power loss: bytes and names. */
  syncDisk(path: string): Promise<void>;
  /** An independent copy: a reflink where the disk can, else the bytes (holes stay holes). EEXIST when `to` is there. */
  clone(from: string, to: string): Promise<void>;
  /** SHA-256 of the whole file, lower-case hex, with its size. Big files are hashed in a worker. Aborted: the signal's reason. */
  hash(path: string, signal?: AbortSignal): Promise<{ hash: string; size: number }>;
  /** Size and free space of the disk below `path`, in bytes. */
  space(path: string): Promise<{ total: number; free: number; available: number }>;
}
