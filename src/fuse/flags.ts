/**
 * The bits and small numbers of the protocol that we look at or send, as in linux/fuse.h (7.45) and the Linux headers.
 * This is our own copy, because the header of a build machine may be older.
 */
import { kernelNodeId } from "../engine/api/index.ts";

export const ROOT_NODE = kernelNodeId(1);
export const NAME_MAX = 255;
export const SYMLINK_MAX = 4095;

/** INIT, first word. */
export const INIT = {
  ASYNC_READ: 1 << 0,
  ATOMIC_O_TRUNC: 1 << 3,
  BIG_WRITES: 1 << 5,
  DO_READDIRPLUS: 1 << 13,
  READDIRPLUS_AUTO: 1 << 14,
  ASYNC_DIO: 1 << 15,
  PARALLEL_DIROPS: 1 << 18,
  ABORT_ERROR: 1 << 21,
  MAX_PAGES: 1 << 22,
  CACHE_SYMLINKS: 1 << 23,
  EXPLICIT_INVAL_DATA: 1 << 25,
  HANDLE_KILLPRIV_V2: 1 << 28,
  SETXATTR_EXT: 1 << 29,
  INIT_EXT: 1 << 30,
} as const;

/** INIT, second word. */
export const INIT2 = { PASSTHROUGH: 1 << 5, HAS_RESEND: 1 << 7 } as const;

export const GETATTR_FH = 1 << 0;

/** SETATTR `valid`. */
export const FATTR = {
  MODE: 1 << 0,
  UID: 1 << 1,
  GID: 1 << 2,
  SIZE: 1 << 3,
  ATIME: 1 << 4,
  MTIME: 1 << 5,
  FH: 1 << 6,
  ATIME_NOW: 1 << 7,
  MTIME_NOW: 1 << 8,
  KILL_SUIDGID: 1 << 11,
} as const;

/** `open_flags` of OPEN and CREATE requests. */
export const OPEN_KILL_SUIDGID = 1 << 0;
export const WRITE_KILL_SUIDGID = 1 << 2;
export const FSYNC_FDATASYNC = 1 << 0;

/** `open_flags` of OPEN and CREATE replies. */
export const FOPEN_DIRECT_IO = 1 << 0;
export const FOPEN_KEEP_CACHE = 1 << 1;
/** The kernel keeps the listing. An open without KEEP_CACHE drops a kept listing. */
export const FOPEN_CACHE_DIR = 1 << 3;
/** close(2) sends no FLUSH. */
export const FOPEN_NOFLUSH = 1 << 5;
/** Together with the backing id, and without KEEP_CACHE. */
export const FOPEN_PASSTHROUGH = 1 << 7;

export const RENAME_NOREPLACE = 1 << 0;
export const RENAME_EXCHANGE = 1 << 1;

export const XATTR_CREATE = 1;
export const XATTR_REPLACE = 2;

export const SEEK_DATA = 3;
export const SEEK_HOLE = 4;

/** open(2), the values common to x86, arm64, riscv and s390. */
export const O = { ACCMODE: 3, WRONLY: 1, RDWR: 2, EXCL: 0o200, TRUNC: 0o1000, APPEND: 0o2000 } as const;

/** File type bits of a mode. */
export const S_IFMT = 0o170000;
export const S_ISUID_ISGID = 0o6000;

/** STATX_BASIC_STATS | STATX_BTIME: everything that a Stat holds. */
export const STATX_MASK = 0xfff;

/** Extension records up to this type are security contexts (the type is their number). */
export const EXT_MAX_SECCTX = 31;
export const EXT_GROUPS = 32;
