/**
 * Types of the package fuse-native 2.2.6, as far as it is used; it has none of its own. Names that begin with "_" are
 * not documented, so library.ts checks that they exist.
 */
declare module "fuse-native" {
  /** The first argument is 0, a count, or -errno; the second is the value that was asked for. */
  export type Done<V = undefined> = (result: number, value?: V) => void;

  export interface NativeStat {
    readonly mode: number;
    readonly uid: number;
    readonly gid: number;
    readonly size: number;
    readonly nlink: number;
    readonly ino: number;
    readonly rdev: number;
    readonly blksize: number;
    readonly blocks: number;
    /** Milliseconds since 1970, not negative. */
    readonly atime: number;
    readonly mtime: number;
    readonly ctime: number;
  }

  /** Each number is taken modulo 2^32. */
  export interface NativeSpace {
    readonly bsize: number;
    readonly frsize: number;
    readonly blocks: number;
    readonly bfree: number;
    readonly bavail: number;
    readonly files: number;
    readonly ffree: number;
    readonly favail: number;
    readonly namemax: number;
  }

  /**
   * Paths begin with "/". The library itself answers operations that are missing here. `fd`: a number that open or
   * create gave, not 0.
   */
  export interface Operations {
    getattr(path: string, done: Done<NativeStat>): void;
    readdir(path: string, done: (result: number, names?: string[], stats?: NativeStat[]) => void): void;
    readlink(path: string, done: Done<string>): void;
    statfs(path: string, done: Done<NativeSpace>): void;
    chmod(path: string, mode: number, done: Done): void;
    chown(path: string, uid: number, gid: number, done: Done): void;
    utimens(path: string, atime: number, mtime: number, done: Done): void;
    truncate(path: string, size: number, done: Done): void;
    ftruncate(path: string, fd: number, size: number, done: Done): void;
    mknod(path: string, mode: number, device: number, done: Done): void;
    mkdir(path: string, mode: number, done: Done): void;
    symlink(target: string, path: string, done: Done): void;
    link(from: string, to: string, done: Done): void;
    rename(from: string, to: string, done: Done): void;
    unlink(path: string, done: Done): void;
    rmdir(path: string, done: Done): void;
    open(path: string, flags: number, done: Done<number>): void;
    create(path: string, mode: number, done: Done<number>): void;
    /** The buffer must not be touched after `done`. */
    read(path: string, fd: number, into: Buffer, length: number, offset: number, done: Done): void;
    write(path: string, fd: number, from: Buffer, length: number, offset: number, done: Done): void;
    flush(path: string, fd: number, done: Done): void;
    fsync(path: string, dataOnly: number, fd: number, done: Done): void;
    fsyncdir(path: string, dataOnly: number, fd: number, done: Done): void;
    release(path: string, fd: number, done: Done): void;
    setxattr(path: string, name: string, value: Buffer, position: number, flags: number, done: Done): void;
    getxattr(path: string, name: string, position: number, done: Done<Buffer>): void;
    listxattr(path: string, done: Done<string[]>): void;
    removexattr(path: string, name: string, done: Done): void;
  }

  /** Answers the waiting thread. The memory must be that of the buffer that the thread lent. */
  export type Signal = (result: number, lent: ArrayBufferLike) => void;
  /** `thread`: the bytes of the thread's struct. */
  export type Handler = (thread: Buffer, operation: number, ...values: unknown[]) => unknown;

  class Fuse {
    constructor(mountpoint: string, operations: Operations, options: { timeout: false });
    mount(done: (error: Error | null) => void): void;
    readonly ops: Operations;
    readonly _handlers: (Handler | undefined)[];
    _fuseOptions(): string;
    _op_getxattr(signal: Signal, path: string, name: string, into: Buffer, position: number): void;
    _op_listxattr(signal: Signal, path: string, into: Buffer): void;
  }
  export default Fuse;
}
