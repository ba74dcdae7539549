/**
 * The errno names and their numbers on Linux (the generic table: x86, arm64, riscv, s390). A new FsErrorCode does not
 * compile until it has its number here.
 */
import { FsError, type FsErrorCode } from "../engine/api/index.ts";

const FS_ERRNO = {
  EPERM: 1,
  ENOENT: 2,
  EINTR: 4,
  EIO: 5,
  ENXIO: 6,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EBUSY: 16,
  EEXIST: 17,
  EXDEV: 18,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  ENFILE: 23,
  EFBIG: 27,
  ENOSPC: 28,
  EROFS: 30,
  EMLINK: 31,
  ERANGE: 34,
  ENAMETOOLONG: 36,
  ENOTEMPTY: 39,
  ELOOP: 40,
  ENODATA: 61,
  EOVERFLOW: 75,
  EILSEQ: 84,
  EOPNOTSUPP: 95,
  ETIMEDOUT: 110,
  ESTALE: 116,
  EDQUOT: 122,
} as const satisfies Record<FsErrorCode, number>;

/**
 * Errors of the protocol, never of a file system. ENOSYS means "never ask again", not "failed": the kernel remembers it
 * for the whole mount.
 */
const PROTOCOL_ERRNO = { ENOTTY: 25, ENOSYS: 38, EPROTO: 71 } as const;

/** Errors of a write to the device that say something about the connection. */
export const CONNECTION_ERRNO = { ENODEV: 19, ECONNABORTED: 103, ENOTCONN: 107, ECANCELED: 125 } as const;

export const ERRNO = { ...FS_ERRNO, ...PROTOCOL_ERRNO } as const;

export type ErrorName = keyof typeof ERRNO;

/** The errno for an error that a handler threw: its code, or EIO when it is not an FsError. */
export function errorName(error: unknown): FsErrorCode {
  return error instanceof FsError ? error.code : "EIO";
}
