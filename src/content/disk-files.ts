/**
 * `Files` on a real disk, which is assumed to be local. This file does not know the purpose of the files.
 *
 * fstat of an open file is answered from memory, so it is called synchronously (2 µs; 10 to 30 µs through the thread
 * pool). Small writes, which end in the page cache, are synchronous too, and so are opening and closing, unless one of
 * these calls had to wait a moment ago. All other calls that may wait go through the pool, by Node's callback functions
 * on plain descriptors. These cost up to a sixth less than FileHandle, and native calls need them anyway.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { type ElapsedTime, minus, plus } from "../lib/clocks.ts";
import type { FileStat, Files, OpenFile, OpenMode } from "../lib/files.ts";
import type { Clock } from "../lib/runtime.ts";
import { hasCode, systemError, withBytesWritten, withCode } from "../lib/system-error.ts";
import { type Time, timeFromNanoseconds } from "../lib/time.ts";
import type { HashWorkers } from "./hash-workers.ts";

/** Calls that Node lacks. Each throws or rejects with a system error. */
export interface SystemCalls {
  /** futimens(2). Null leaves a time as it is. */
  setTimes(fd: number, atime: Time | null, mtime: Time | null): void | Promise<void>;
  /** The time that the kernel would give a file that is changed now. */
  currentTime(): Time;
  /** fallocate(2) with the kernel's mode bits. */
  fallocate(fd: number, mode: number, offset: number, length: number): Promise<void>;
  /** SEEK_DATA or SEEK_HOLE. Undefined when there is none (ENXIO). */
  seek(fd: number, whence: "data" | "hole", offset: number): number | undefined;
  /** Reads bytes that are in the page cache and returns their number. Undefined: the call would wait for the disk. */
  readNow(fd: number, buffer: Uint8Array, position: number): number | undefined;
  /** syncfs(2) of the descriptor's disk. */
  syncDisk(fd: number): Promise<void>;
  /**
   * Gives `fdTo` the content of `fdFrom`: by a reflink where the disk can, else by copying the bytes. Holes stay holes.
   */
  clone(fdFrom: number, fdTo: number): Promise<void>;
  /** True if no other program has the file open, or mapped, for writing. */
  isOnlyWriter(fd: number): boolean;
  /**
   * Asks the disk to put each folder made in this one into a region of its own. Throws where the file system has no
   * such regions.
   */
  spreadFolders(fd: number): void;
  /** flock(2), exclusive, without waiting. True: the lock is ours now. */
  lockFile(fd: number): boolean;
}

const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_DIRECTORY } = fs.constants;
const OWNER_ONLY = 0o600;
const OPEN_FLAGS: Readonly<Record<OpenMode, number>> = {
  r: O_RDONLY,
  "r+": O_RDWR,
  "w+": O_RDWR | O_CREAT,
  "wx+": O_RDWR | O_CREAT | O_EXCL,
};

/** Bytes. Smaller files are hashed on the JS thread, in less than 5 ms: a worker would cost more. */
const HASH_INLINE = 1 << 20;

/**
 * Bytes. A write up to this size costs less than its way through the pool. So does a read of bytes in memory, for which
 * the kernel asks in pieces of 128 KiB.
 */
const WRITE_INLINE = 64 * 1024;
const READ_INLINE = 256 * 1024;
/** Bytes. The close of a larger file that was truncated before may begin to write it to the disk. */
const CLOSE_INLINE = 1 << 20;
/**
 * The kernel makes callers wait when the disk does not keep up. After a wait of this length, calls go through the pool
 * for at least WARY_MS.
 */
const WAIT_MS = 10;
const WARY_MS = 1000;
/** After a long wait, calls go through the pool for this many times its length. */
const WARY_TIMES = 50;

export function createDiskFiles(needs: {
  systemCalls: SystemCalls;
  hashWorkers: HashWorkers;
  elapsed: Clock["elapsed"];
}): Files {
  const { systemCalls, hashWorkers, elapsed } = needs;
  const pace: Pace = { elapsed, waryUntil: undefined };

  const openPath = async (path: string, flags: number) =>
    isWary(pace) ? openDescriptor(path, flags) : inline(pace, () => fs.openSync(path, flags, OWNER_ONLY));

  const open = async (path: string, mode: OpenMode) =>
    new DiskFile(await openPath(path, OPEN_FLAGS[mode]), path, systemCalls, pace);

  async function withFolder(path: string, work: (fd: number) => Promise<void>): Promise<void> {
    const fd = await openPath(path, O_RDONLY | O_DIRECTORY);
    try {
      await work(fd);
    } finally {
      if (isWary(pace)) await closeDescriptor(fd);
      else inline(pace, () => fs.closeSync(fd));
    }
  }

  return {
    currentTime: () => systemCalls.currentTime(),
    open,
    stat: async (path) => toStat(await call<fs.BigIntStats>((done) => fs.stat(path, { bigint: true }, done))),
    rename: (from, to) => call<void>((done) => fs.rename(from, to, done)),

    async remove(path) {
      try {
        await call<void>((done) => fs.unlink(path, done));
      } catch (error) {
        if (!hasCode(error, "ENOENT")) throw error;
      }
    },

    async makeFolder(path) {
      await call<string | undefined>((done) => fs.mkdir(path, { recursive: true, mode: 0o700 }, done));
    },

    async spreadFolders(path) {
      try {
        await withFolder(path, async (fd) => systemCalls.spreadFolders(fd));
      } catch {
        // The disk has no regions, or cannot be changed. Everything works without them.
      }
    },

    list: (path) => call<string[]>((done) => fs.readdir(path, done)),

    syncFolder: (path) => withFolder(path, (fd) => call<void>((done) => fs.fsync(fd, done))),
    syncDisk: (path) => withFolder(path, (fd) => systemCalls.syncDisk(fd)),

    async clone(from, to) {
      const source = await open(from, "r");
      try {
        const target = await open(to, "wx+");
        try {
          await source.cloneInto(target);
        } catch (error) {
          await call<void>((done) => fs.unlink(to, done));
          throw error;
        } finally {
          await target.close();
        }
      } finally {
        await source.close();
      }
    },

    async hash(path, signal) {
      signal?.throwIfAborted();
      return (await hashSmall(path)) ?? hashWorkers.hash(path, signal);

      async function hashSmall(path: string) {
        const file = await open(path, "r");
        try {
          const { size } = await file.stat();
          if (size > HASH_INLINE) return undefined;
          // Room for one byte more shows that the file has grown. Then a worker hashes it.
          const buffer = Buffer.allocUnsafe(size + 1);
          const read = await file.read(buffer, 0, size + 1, 0);
          signal?.throwIfAborted();
          if (read > size) return undefined;
          return { hash: createHash("sha256").update(buffer.subarray(0, read)).digest("hex"), size: read };
        } finally {
          await file.close();
        }
      }
    },

    beginHash: (path) => hashWorkers.beginHash(path),

    async space(path) {
      const { bsize, blocks, bfree, bavail } = await call<fs.StatsFs>((done) => fs.statfs(path, done));
      return { total: blocks * bsize, free: bfree * bsize, available: bavail * bsize };
    },
  };
}

/**
 * A raw descriptor is only a number, which the kernel gives out again after close. So `close` waits for the calls under
 * way, and later calls fail here (EBADF) and never reach the kernel.
 */
class DiskFile implements OpenFile {
  readonly #pace: Pace;
  readonly #fd: number;
  readonly #path: string;
  readonly #system: SystemCalls;
  #callsUnderWay = 0;
  #closing: Promise<void> | undefined;
  #whenIdle: (() => void) | undefined;
  /** The size at the last `stat`, raised to the end of later writes. Undefined before the first `stat`: not known. */
  #size: number | undefined;
  #lostBytes: unknown;

  constructor(fd: number, path: string, system: SystemCalls, pace: Pace) {
    this.#pace = pace;
    this.#fd = fd;
    this.#path = path;
    this.#system = system;
  }

  get descriptor(): number {
    return this.#fd;
  }

  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return this.#use("read", async (fd) => {
      this.#expectOffset(position, "read");
      let total = 0;
      while (total < length) {
        const read = await this.#readPart(fd, buffer, offset + total, length - total, position + total);
        total += read;
        // Asking for the size is cheaper than a read that returns nothing.
        if (read === 0 || (total < length && fs.fstatSync(fd).size <= position + total)) break;
      }
      return total;
    });
  }

  #readPart(fd: number, buffer: Uint8Array, start: number, length: number, position: number): number | Promise<number> {
    const read =
      length > READ_INLINE ? undefined : this.#system.readNow(fd, buffer.subarray(start, start + length), position);
    return read ?? readOnce(fd, buffer, start, length, position);
  }

  write(buffer: Uint8Array, position: number): Promise<void> {
    return this.#use("write", async (fd) => {
      this.#expectOffset(position, "write");
      this.#reaches(position + buffer.length);
      let total = 0;
      while (total < buffer.length) {
        const length = buffer.length - total;
        const written = await this.#writePart(fd, buffer, total, length, position + total);
        if (written === 0) throw systemError("EIO", "write", this.#path);
        total += written;
      }
    });
  }

  writeNow(buffer: Uint8Array, position: number): boolean {
    if (this.#closing !== undefined || isWary(this.#pace)) return false;
    this.#expectOffset(position, "write");
    this.#reaches(position + buffer.length);
    try {
      const written = inline(this.#pace, () => fs.writeSync(this.#fd, buffer, 0, buffer.length, position));
      return written === buffer.length;
    } catch {
      return false;
    }
  }

  async #writePart(fd: number, buffer: Uint8Array, start: number, length: number, position: number): Promise<number> {
    try {
      return length <= WRITE_INLINE && !isWary(this.#pace)
        ? inline(this.#pace, () => fs.writeSync(fd, buffer, start, length, position))
        : await writeOnce(fd, buffer, start, length, position);
    } catch (error) {
      throw withBytesWritten(error, start);
    }
  }

  truncate(size: number): Promise<void> {
    return this.#use("ftruncate", (fd) => {
      this.#expectOffset(size, "ftruncate");
      return call<void>((done) => fs.ftruncate(fd, size, done));
    });
  }

  stat(): Promise<FileStat> {
    return this.#use("fstat", (fd) => {
      const stat = toStat(fs.fstatSync(fd, { bigint: true }));
      this.#size = stat.size;
      return stat;
    });
  }

  setTimes(mtime: Time): Promise<void> {
    return this.#use("futimens", (fd) => this.#system.setTimes(fd, null, mtime));
  }

  /**
   * After an EIO the kernel forgets the bytes that it could not write, and reports the next sync as a success. So every
   * later sync fails here.
   */
  sync(): Promise<void> {
    return this.#use("fdatasync", async (fd) => {
      if (this.#lostBytes !== undefined) throw this.#lostBytes;
      try {
        await call<void>((done) => fs.fdatasync(fd, done));
      } catch (error) {
        if (hasCode(error, "EIO")) this.#lostBytes = error;
        throw error;
      }
    });
  }

  isOnlyWriter(): Promise<boolean> {
    return this.#use("fcntl", (fd) => this.#system.isOnlyWriter(fd));
  }

  seek(kind: "data" | "hole", offset: number): Promise<number | undefined> {
    return this.#use("lseek", (fd) => this.#system.seek(fd, kind, offset));
  }

  allocate(mode: number, offset: number, length: number): Promise<void> {
    return this.#use("fallocate", (fd) => this.#system.fallocate(fd, mode, offset, length));
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeWhenIdle();
    return this.#closing;
  }

  cloneInto(target: DiskFile): Promise<void> {
    return this.#use("clone", (from) => target.#use("clone", (to) => this.#system.clone(from, to)));
  }

  /** EINVAL. Node would take a negative position for the present one, and a negative size for 0. */
  #expectOffset(offset: number, syscall: string): void {
    if (!Number.isSafeInteger(offset) || offset < 0) throw systemError("EINVAL", syscall, this.#path);
  }

  #reaches(end: number): void {
    if (this.#size !== undefined) this.#size = Math.max(this.#size, end);
  }

  async #use<T>(syscall: string, run: (fd: number) => T | Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw systemError("EBADF", syscall, this.#path);
    this.#callsUnderWay++;
    try {
      return await run(this.#fd);
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
      // The error of a call by descriptor has no path.
      throw withCode(Object.assign(error, { path: this.#path }));
    } finally {
      this.#callsUnderWay--;
      if (this.#callsUnderWay === 0) this.#whenIdle?.();
    }
  }

  async #closeWhenIdle(): Promise<void> {
    if (this.#callsUnderWay > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    const isSmall = this.#size !== undefined && this.#size <= CLOSE_INLINE;
    if (!isSmall || isWary(this.#pace)) return closeDescriptor(this.#fd);
    inline(this.#pace, () => fs.closeSync(this.#fd));
  }
}

interface Pace {
  readonly elapsed: Clock["elapsed"];
  waryUntil: ElapsedTime | undefined;
}

function isWary({ elapsed, waryUntil }: Pace): boolean {
  return waryUntil !== undefined && elapsed() < waryUntil;
}

function inline<T>(pace: Pace, call: () => T): T {
  const start = pace.elapsed();
  try {
    return call();
  } catch (error) {
    throw withCode(error);
  } finally {
    const end = pace.elapsed();
    const took = minus(end, start);
    if (took >= WAIT_MS) pace.waryUntil = plus(end, Math.max(WARY_MS, WARY_TIMES * took));
  }
}

function toStat(stat: fs.BigIntStats): FileStat {
  return {
    size: Number(stat.size),
    allocated: Number(stat.blocks) * 512,
    mtime: timeFromNanoseconds(stat.mtimeNs),
    ctime: timeFromNanoseconds(stat.ctimeNs),
  };
}

/** Child processes do not inherit the descriptor: Node adds O_CLOEXEC. */
function openDescriptor(path: string, flags: number): Promise<number> {
  return call<number>((done) => fs.open(path, flags, OWNER_ONLY, done));
}

function closeDescriptor(fd: number): Promise<void> {
  return call<void>((done) => fs.close(fd, done));
}

function readOnce(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): Promise<number> {
  return call<number>((done) => fs.read(fd, buffer, offset, length, position, done));
}

function writeOnce(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): Promise<number> {
  return call<number>((done) => fs.write(fd, buffer, offset, length, position, done));
}

function call<T>(start: (done: (error: NodeJS.ErrnoException | null, value?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => (error === null || error === undefined ? resolve(value as T) : reject(withCode(error))));
  });
}
